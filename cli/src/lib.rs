//! The tg multi-call binary and its tg-* names.
