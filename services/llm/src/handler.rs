//! The two hosted processors: questions from the bus to the completer and back.
