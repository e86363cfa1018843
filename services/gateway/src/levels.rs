//! From which level on clients of `/mcp` want to hear of a log, by their sessions. This gateway alone knows it: at another one, and
//! once newer sessions have taken the room, those of the same user first, a client hears nothing until it says so again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::mcp::level::Level;

/// Sessions of which it is known, and of one user; one more takes the place of the oldest.
const MOST: usize = 4_096;
const OWN: usize = 64;

/// A user and their session.
type Of = (Arc<str>, String);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Levels(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    levels: HashMap<Of, Level>,
    /// The oldest first.
    order: VecDeque<Of>,
}

impl Levels {
    /// Notes it of a session.
    pub(crate) fn set(&self, user: &Arc<str>, session: &str, level: Level) {
        let of = (user.clone(), session.to_owned());
        let mut kept = self.0.lock();
        if kept.levels.insert(of.clone(), level).is_some() {
            return;
        }
        kept.order.push_back(of);
        let own = kept.order.iter().filter(|of| of.0 == *user).count();
        let oldest = match own > OWN {
            true => kept.order.iter().position(|of| of.0 == *user),
            false => (kept.order.len() > MOST).then_some(0),
        };
        if let Some(oldest) = oldest.and_then(|at| kept.order.remove(at)) {
            kept.levels.remove(&oldest);
        }
    }

    /// That of a session; `None`: it wants to hear of nothing.
    pub(crate) fn of(&self, user: &Arc<str>, session: &str) -> Option<Level> {
        let of = (user.clone(), session.to_owned());
        self.0.lock().levels.get(&of).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_session_of_a_user_makes_room() {
        let levels = Levels::default();
        let (user, other): (Arc<str>, Arc<str>) = ("u".into(), "v".into());
        levels.set(&user, "0", Level::Debug);
        levels.set(&user, "0", Level::Error);
        assert_eq!(levels.of(&user, "0"), Some(Level::Error));
        assert_eq!(levels.of(&other, "0"), None);
        levels.set(&other, "0", Level::Debug);
        for session in 1..=OWN {
            levels.set(&user, &session.to_string(), Level::Info);
        }
        assert_eq!(levels.of(&user, "0"), None);
        assert_eq!(levels.of(&user, "1"), Some(Level::Info));
        // Nobody silences the sessions of others.
        assert_eq!(levels.of(&other, "0"), Some(Level::Debug));
    }

    #[test]
    fn the_oldest_session_of_all_makes_room() {
        let levels = Levels::default();
        let user = |at: usize| -> Arc<str> { format!("u{at}").into() };
        for at in 0..=MOST {
            levels.set(&user(at), "s", Level::Info);
        }
        assert_eq!(levels.of(&user(0), "s"), None);
        assert_eq!(levels.of(&user(1), "s"), Some(Level::Info));
    }
}
