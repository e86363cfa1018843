//! Text completion over model providers.
