//! Pictures of a chat: those that its turns hold, and those that they name by an address. These are fetched from the open
//! network only: whoever asks may not look at what only this machine reaches.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use tg_mesh::Cx;
use tg_mesh::fair::Share;
use tg_provider_http::{HttpClient, Limits, Reach, within};
use tg_schemas::limits;
use tg_schemas::msg::ChatTurn;
use tokio::time::{Instant, timeout_at};

use super::picture_room::{PictureRoom, units};
use crate::error::LlmError;
use crate::model::ChatRequest;
use crate::picture::Picture;

/// Longest time for which the pictures of a chat are fetched: so long they hold as much memory as they may need.
const FETCHING: Duration = Duration::from_secs(20);
/// Where pictures are fetched from.
const REACH: Reach = Reach::Public;
/// How an address of one that is fetched begins.
const SECURE: &str = "https://";

/// Takes pictures out of chats.
pub(crate) struct ChatPictures {
    room: Arc<PictureRoom>,
    /// Made for the first one that is fetched; `None`: this machine can make none.
    client: OnceLock<Option<HttpClient>>,
}

impl ChatPictures {
    pub(crate) fn new(room: Arc<PictureRoom>) -> Self {
        Self {
            room,
            client: OnceLock::new(),
        }
    }

    /// Memory for the pictures of a chat, which are together as large as one may be. `None`: it has none.
    pub(super) async fn room(
        &self,
        cx: &Cx,
        request: &ChatRequest,
    ) -> Result<Option<Share>, LlmError> {
        let turns = request.dialog.iter().flat_map(|dialog| &dialog.turns);
        match needed(turns.flat_map(|turn| &turn.images)) {
            Some(needed) => self.room.take(cx, needed).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes the pictures of a chat out of its turns, and gives back the memory that they do not need.
    pub(super) async fn take(
        &self,
        cx: &Cx,
        request: &mut ChatRequest,
        room: &mut Share,
    ) -> Result<(), LlmError> {
        let Some(dialog) = request.dialog.as_mut().map(Arc::make_mut) else {
            return Ok(());
        };
        let named = named(&mut dialog.turns);
        let left = within(cx.deadline.left()).min(FETCHING);
        let fetched = |url: String| async move {
            let client = self.client.get_or_init(client).as_ref();
            fetch(client.ok_or(LlmError::NoPictureThere)?, &url).await
        };
        dialog.pictures = tokio::select! {
            pictures = all(named, left, fetched) => pictures?,
            () = cx.cancel.cancelled() => return Err(LlmError::Cancelled),
        };
        keep(room, &dialog.pictures);
        Ok(())
    }
}

/// Bytes of base64 that pictures may have, by what names them. `None`: there are none.
fn needed<'a>(images: impl Iterator<Item = &'a String>) -> Option<usize> {
    let most = limits::base64(limits::PICTURE);
    // How large one is that is fetched is known too late.
    let sizes = images.map(|image| if is_held(image) { image.len() } else { most });
    let needed = sizes.reduce(usize::saturating_add);
    needed.map(|needed| needed.min(most))
}

/// The pictures, all together as large as one may be, those that are somewhere within the time that is `left`.
async fn all<F: Future<Output = Result<Picture, LlmError>>>(
    named: Vec<(usize, String)>,
    left: Duration,
    fetched: impl Fn(String) -> F,
) -> Result<Vec<(usize, Picture)>, LlmError> {
    let until = Instant::now() + left;
    let mut room = limits::base64(limits::PICTURE);
    let mut pictures = Vec::with_capacity(named.len());
    for (at, image) in named {
        let picture = match is_held(&image) {
            true => read(&image)?,
            false => {
                let fetched = timeout_at(until, fetched(image)).await;
                fetched.unwrap_or(Err(LlmError::NoPictureThere))?
            }
        };
        let after = room.checked_sub(picture.base64.len());
        room = after.ok_or(LlmError::LargePictures)?;
        pictures.push((at, picture));
    }
    Ok(pictures)
}

/// Gives back the memory that pictures turned out not to need.
fn keep(room: &mut Share, pictures: &[(usize, Picture)]) {
    let sizes = pictures.iter().map(|(_, picture)| picture.base64.len());
    room.shrink(units(sizes.sum()));
}

fn client() -> Option<HttpClient> {
    let bounds = Limits {
        silence: Some(FETCHING),
        answer: limits::PICTURE,
        reach: REACH,
        ..Limits::default()
    };
    HttpClient::new(SECURE, bounds).ok()
}

/// Whether turns name pictures, which are of the user, not too many and nowhere that nobody may look at.
///
/// # Errors
/// What is wrong with them.
pub(super) fn check<'a>(turns: impl Iterator<Item = &'a ChatTurn>) -> Result<bool, LlmError> {
    let mut many = 0;
    for turn in turns.filter(|turn| !turn.images.is_empty()) {
        if turn.role != "user" {
            return Err(LlmError::PictureTurn);
        }
        many += turn.images.len();
        let mut addresses = turn.images.iter().filter(|image| !is_held(image));
        addresses.try_for_each(|url| open_to_all(url))?;
    }
    match many <= limits::CHAT_PICTURES {
        true => Ok(many > 0),
        false => Err(LlmError::Pictures),
    }
}

/// The pictures that turns name, with the places of the turns, which have none any more.
fn named(turns: &mut [ChatTurn]) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (at, turn) in turns.iter_mut().enumerate() {
        let images = std::mem::take(&mut turn.images).into_iter();
        named.extend(images.map(|image| (at, image)));
    }
    named
}

fn is_held(image: &str) -> bool {
    image.starts_with("data:")
}

/// One that its address holds.
fn read(image: &str) -> Result<Picture, LlmError> {
    let (about, base64) = image.split_once(',').ok_or(LlmError::NoPicture)?;
    let about = about.strip_prefix("data:").unwrap_or(about);
    let media_type = about.strip_suffix(";base64").ok_or(LlmError::NoPicture)?;
    Picture::read(base64.to_owned(), media_type)
}

/// Whether anybody may look at what is at an address, as far as it says so itself. What a name stands for is looked at when it is
/// resolved.
fn open_to_all(url: &str) -> Result<(), LlmError> {
    let is_secure = url.starts_with(SECURE) && url.len() <= limits::PICTURE_ADDRESS;
    match is_secure && REACH.check(url).is_ok() {
        true => Ok(()),
        false => Err(LlmError::PictureAddress),
    }
}

/// One that is somewhere. Why there is none is not told: that would tell what answers there.
async fn fetch(client: &HttpClient, url: &str) -> Result<Picture, LlmError> {
    let none = LlmError::NoPictureThere;
    let answer = client.send(client.get(url)).await;
    let mut chunks = pin!(answer.map_err(|_| none.clone())?.bytes());
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk.map_err(|_| none.clone())?);
    }
    Picture::read(STANDARD.encode(&bytes), "").map_err(|_| none)
}

#[cfg(test)]
mod tests {
    use tg_mesh::fair::Pool;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn turn(role: &str, images: &[&str]) -> ChatTurn {
        ChatTurn {
            role: role.to_owned(),
            images: images.iter().map(|image| (*image).to_owned()).collect(),
            ..ChatTurn::default()
        }
    }

    #[test]
    fn pictures_are_taken_out_of_the_users_turns() {
        let mut turns = [turn("system", &[]), turn("user", &["data:a", "data:b"])];
        assert_eq!(check(turns.iter()), Ok(true));
        let pairs = named(&mut turns);
        assert_eq!(pairs, [(1, "data:a".to_owned()), (1, "data:b".to_owned())]);
        assert_eq!(check(turns.iter()), Ok(false));
        let of = |role: &str, images: &[&str]| check([turn(role, images)].iter());
        assert_eq!(of("assistant", &["data:a"]), Err(LlmError::PictureTurn));
        let many = ["data:"; limits::CHAT_PICTURES + 1];
        assert_eq!(of("user", &many), Err(LlmError::Pictures));
        let private = of("user", &["https://127.0.0.1/a.png"]);
        assert_eq!(private, Err(LlmError::PictureAddress));
    }

    #[test]
    fn pictures_need_the_memory_of_the_largest_at_most() {
        let most = limits::base64(limits::PICTURE);
        let needs = |images: &[&str]| {
            let images: Vec<String> = images.iter().map(|image| (*image).to_owned()).collect();
            needed(images.iter())
        };
        assert_eq!(needs(&[]), None);
        assert_eq!(needs(&["data:a", "data:bc"]), Some(13));
        for more in [&["https://h/a"][..], &["https://h/a", "data:a"]] {
            assert_eq!(needs(more), Some(most));
        }
    }

    #[test]
    fn an_address_that_holds_a_picture_is_read() {
        let media = |image: &str| read(image).map(|picture| picture.media_type);
        assert_eq!(media("data:image/png;base64,iVBORw0KGgo="), Ok("image/png"));
        assert_eq!(media("data:;base64,iVBORw0KGgo="), Ok("image/png"));
        for wrong in [
            "data:image/png,x",
            "data:",
            "data:image/png;base64,aGVsbG8=",
        ] {
            assert_eq!(media(wrong), Err(LlmError::NoPicture), "{wrong}");
        }
        let other = media("data:image/gif;base64,iVBORw0KGgo=");
        assert_eq!(other, Err(LlmError::OtherPicture));
    }

    #[test]
    fn only_addresses_that_are_open_to_all_are_asked() {
        assert_eq!(open_to_all("https://example.org/a.png"), Ok(()));
        let long = format!(
            "https://example.org/{}",
            "a".repeat(limits::PICTURE_ADDRESS)
        );
        for url in [
            "http://example.org/a.png",
            "https://127.0.0.1/a.png",
            "https://10.0.0.7/a.png",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/a.png",
            "https://",
            "file:///etc/passwd",
            "",
            long.as_str(),
        ] {
            assert_eq!(open_to_all(url), Err(LlmError::PictureAddress), "{url}");
        }
    }

    /// Of several that take 15 s each the second is given up: they have 20 s together.
    #[tokio::test(start_paused = true)]
    async fn all_pictures_of_a_chat_are_fetched_within_one_span() {
        let slow = |_: String| async {
            tokio::time::sleep(Duration::from_secs(15)).await;
            Picture::read(STANDARD.encode(PNG), "")
        };
        let urls = |many: usize| vec![(0, SECURE.to_owned()); many];
        let one = all(urls(1), FETCHING, slow).await;
        assert_eq!(one.map(|pictures| pictures.len()), Ok(1));
        let began = Instant::now();
        let several = all(urls(16), FETCHING, slow).await;
        assert_eq!(several, Err(LlmError::NoPictureThere));
        assert_eq!(began.elapsed(), FETCHING);
    }

    #[test]
    fn a_small_picture_keeps_little_memory() {
        let pool = Pool::new(100 << 10, 100 << 10);
        let user = Arc::from("w");
        let mut room = pool
            .try_take(&user, units(limits::base64(limits::PICTURE)))
            .unwrap();
        let picture = Picture::read(STANDARD.encode(PNG), "").unwrap();
        keep(&mut room, &[(0, picture)]);
        assert_eq!(room.units(), 1);
        assert!(pool.try_take(&user, (100 << 10) - 1).is_some());
    }

    /// Fetches what a server of one answer has.
    async fn fetched(body: &[u8]) -> Result<Picture, LlmError> {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a.png", socket.local_addr().unwrap());
        let bounds = Limits {
            answer: limits::PICTURE,
            ..Limits::default()
        };
        let client = HttpClient::new(&url, bounds).unwrap();
        let serving = async {
            let (mut stream, _) = socket.accept().await.unwrap();
            let mut asked = [0; 1024];
            let read = stream.read(&mut asked).await.unwrap();
            assert!(asked[..read].starts_with(b"GET /a.png "));
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ";
            let head = format!("{head}{}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body).await.unwrap();
        };
        tokio::join!(fetch(&client, &url), serving).0
    }

    #[tokio::test]
    async fn a_picture_is_fetched_and_anything_else_is_none() {
        let picture = fetched(PNG).await.unwrap();
        assert_eq!(
            (picture.media_type, picture.base64.as_str()),
            ("image/png", "iVBORw0KGgo=")
        );
        let text = fetched(b"the password is hunter2").await;
        assert_eq!(text, Err(LlmError::NoPictureThere));
        let nobody = "http://127.0.0.1:9/a.png";
        let client = HttpClient::new(nobody, Limits::default()).unwrap();
        let none = fetch(&client, nobody).await;
        assert_eq!(none, Err(LlmError::NoPictureThere));
    }
}
