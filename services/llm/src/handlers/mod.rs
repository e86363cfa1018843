//! Handlers: both processors that complete texts share one; a chat and a picture are questions of their own.

mod chat_completion;
mod chat_pictures;
mod counting;
mod image_to_text;
mod picture_room;
mod room;
mod text_completion;
mod usage;
mod wishes;
mod written;

pub(crate) use chat_completion::ChatCompletion;
pub(crate) use chat_pictures::ChatPictures;
pub(crate) use image_to_text::ImageToText;
pub(crate) use picture_room::PictureRoom;
pub(crate) use room::{Rooms, WATCHED};
pub(crate) use text_completion::TextCompletion;
