//! What of passwords takes long: beside the runtime, few at once. Whoever is nobody, or has no password, takes as long as
//! whoever has another one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_schemas::msg::IamRequest;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::attempts::{Attempt, Attempts, digest};
use crate::cached::CachedDirectory;
use crate::engine::{self, auth_failed};
use crate::password::{LONGEST, PasswordHash, Proof, Temporary};

/// Most at once: a login is not to take the machine.
const AT_ONCE: usize = 4;
/// Most that wait. More are told to come again.
const WAITING: usize = 64;
/// Most of one name that wait or compute: nobody takes the places of all.
const OF_NAME: usize = 2;
/// Most that somebody who manages users has at once.
const OF_MANAGER: usize = WAITING / 4;

/// What was worked out for a call.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    pub(crate) proof: Option<Proof>,
    pub(crate) password: Option<PasswordHash>,
    pub(crate) temporary: Option<Temporary>,
}

/// The work on passwords of this process.
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    waiting: Arc<Mutex<Waiting>>,
    attempts: Arc<Attempts>,
}

impl Default for Passwords {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new(cores.min(AT_ONCE))),
            waiting: Arc::default(),
            attempts: Arc::default(),
        }
    }
}

/// Those that wait or compute.
#[derive(Debug, Default)]
struct Waiting {
    all: usize,
    of: HashMap<[u8; 32], usize>,
}

/// One of them.
struct Waits {
    all: Arc<Mutex<Waiting>>,
    whose: [u8; 32],
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut waiting = self.all.lock();
        waiting.all -= 1;
        if let Some(own) = waiting.of.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                waiting.of.remove(&self.whose);
            }
        }
    }
}

/// On whose behalf something is computed, and how much at once at most.
#[derive(Clone, Copy)]
struct Share {
    whose: [u8; 32],
    most: usize,
}

impl Share {
    /// Of who comes in by a name.
    fn of_name(name: &str) -> Self {
        Self {
            whose: digest(name),
            most: OF_NAME,
        }
    }

    /// Of who manages others.
    fn of_manager(actor: &str) -> Self {
        Self {
            whose: digest(actor),
            most: OF_MANAGER,
        }
    }
}

impl Passwords {
    /// What an operation needs of that.
    pub(crate) async fn work(
        &self,
        directory: &CachedDirectory,
        ask: &IamRequest,
    ) -> Result<Worked, Error> {
        let mut worked = Worked::default();
        let manager = Share::of_manager(&ask.actor);
        match ask.operation.as_str() {
            "login" => {
                let kept = directory.password_of(|all| {
                    // Whoever may not come in anyway is nobody: their right password forgives no wrong ones.
                    Ok(all.named(&ask.username).filter(|user| all.is_active(user)))
                })?;
                let attempt = Attempt::new(&ask.username, &ask.client_ip);
                let share = Share::of_name(&ask.username);
                worked.proof = Some(self.prove(share, attempt, kept, &ask.password).await?);
            }
            "change-password" => {
                let new = engine::to_hash(ask)?.map(str::to_owned);
                let mut name = String::new();
                let kept = directory.password_of(|all| {
                    let user = engine::own(all, ask)?;
                    name.clone_from(&user.username);
                    Ok(Some(user))
                })?;
                let (attempt, change) = (
                    Attempt::new(&name, &ask.client_ip),
                    Attempt::to_change(&name),
                );
                self.attempts.allow(&change, Instant::now())?;
                let share = Share::of_name(&name);
                worked.proof = Some(self.prove(share, attempt, kept, &ask.password).await?);
                self.attempts.count(&change, Instant::now());
                worked.password = self.hash(share, new).await?;
            }
            "reset-password" => {
                let temporary = Temporary::random();
                worked.password = self
                    .hash(manager, Some(temporary.reveal().to_owned()))
                    .await?;
                worked.temporary = Some(temporary);
            }
            _ => {
                let new = engine::to_hash(ask)?.map(str::to_owned);
                worked.password = self.hash(manager, new).await?;
            }
        }
        Ok(worked)
    }

    /// Shows that somebody knows their password.
    async fn prove(
        &self,
        share: Share,
        attempt: Attempt,
        kept: Option<Proof>,
        given: &str,
    ) -> Result<Proof, Error> {
        self.attempts.allow(&attempt, Instant::now())?;
        let given = Some(given).filter(|given| given.len() <= LONGEST);
        let given = given.ok_or_else(auth_failed)?.to_owned();
        let against = kept.as_ref().map(|kept| kept.against.clone());
        let turn = self.turn(share).await?;
        // Others may have failed while this one waited.
        self.attempts.allow(&attempt, Instant::now())?;
        let attempts = self.attempts.clone();
        let right = turn.work(move || {
            let right = match against {
                Some(against) => against.is_of(&given),
                None => PasswordHash::nobodys(&given),
            };
            match right {
                true => attempts.succeeded(&attempt),
                false => attempts.count(&attempt, Instant::now()),
            }
            right
        });
        let right = right.await?;
        kept.filter(|_| right).ok_or_else(auth_failed)
    }

    async fn hash(
        &self,
        share: Share,
        password: Option<String>,
    ) -> Result<Option<PasswordHash>, Error> {
        let Some(password) = password else {
            return Ok(None);
        };
        let turn = self.turn(share).await?;
        turn.work(move || PasswordHash::of(&password))
            .await
            .map(Some)
    }

    /// A place among those that compute. Who does not wait for it any more leaves.
    async fn turn(&self, share: Share) -> Result<Turn, Error> {
        let waits = {
            let mut waiting = self.waiting.lock();
            let own = waiting.of.get(&share.whose).copied().unwrap_or(0);
            if waiting.all >= WAITING || own >= share.most {
                let text = "too many passwords are being looked at; try again in 2 seconds";
                return Err(Error::typed("too-many-requests", text));
            }
            waiting.all += 1;
            waiting.of.insert(share.whose, own + 1);
            Waits {
                all: self.waiting.clone(),
                whose: share.whose,
            }
        };
        let permit = self.turns.clone().acquire_owned().await;
        Ok(Turn {
            _permit: permit.map_err(|_| stopped())?,
            _waits: waits,
        })
    }
}

/// A place among those that compute.
struct Turn {
    _waits: Waits,
    _permit: OwnedSemaphorePermit,
}

impl Turn {
    /// Computes beside the runtime. Who goes away meanwhile keeps the place, and what comes of it counts: nobody guesses
    /// more, or at more at once, by not waiting for the answer.
    async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(self);
            done
        });
        done.await.map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::new(ErrorCode::Internal, "the password could not be looked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(password: &str) -> Option<Proof> {
        Some(Proof {
            user_id: "u".into(),
            against: PasswordHash::of(password),
        })
    }

    #[tokio::test]
    async fn who_goes_away_guessed_all_the_same() {
        let passwords = Passwords {
            turns: Arc::new(Semaphore::new(1)),
            ..Passwords::default()
        };
        let kept = kept("right");
        let attempt = || Attempt::new("ada", "");
        for _ in 0..10 {
            let mut guess =
                Box::pin(passwords.prove(Share::of_name("ada"), attempt(), kept.clone(), "wrong"));
            // As far as it goes at once: it computes, and nobody waits for it.
            assert!(futures_none(&mut guess).await);
            drop(guess);
            assert_eq!(passwords.waiting.lock().all, 1);
            let place = passwords.turns.acquire().await.unwrap();
            drop(place);
        }
        let refused = passwords
            .prove(Share::of_name("ada"), attempt(), kept, "right")
            .await;
        assert_eq!(refused.unwrap_err().kind, "too-many-requests");
    }

    /// Whether a future is not done when it is looked at once.
    async fn futures_none<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|cx| {
            let pending = std::pin::Pin::new(&mut *future).poll(cx).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }

    #[tokio::test]
    async fn a_right_password_is_proven_and_a_wrong_or_long_one_is_not() {
        let passwords = Passwords::default();
        let kept = kept("right");
        let prove = |kept: Option<Proof>, given: &'static str| {
            passwords.prove(Share::of_name("ada"), Attempt::new("ada", ""), kept, given)
        };
        assert_eq!(
            prove(kept.clone(), "right").await,
            Ok(kept.clone().unwrap())
        );
        for (kept, given) in [(kept.clone(), "wrong"), (kept, ""), (None, "right")] {
            assert_eq!(prove(kept, given).await, Err(auth_failed()));
        }
        let long: &'static str = String::leak("x".repeat(LONGEST + 1));
        assert_eq!(prove(None, long).await, Err(auth_failed()));
    }

    #[tokio::test]
    async fn only_so_many_wait_and_of_one_name_fewer() {
        let passwords = Passwords {
            turns: Arc::new(Semaphore::new(WAITING)),
            ..Passwords::default()
        };
        let ada = Share::of_name("ada");
        let mut held = Vec::new();
        for _ in 0..OF_NAME {
            held.push(passwords.turn(ada).await.ok().unwrap());
        }
        let refused = passwords.hash(ada, Some("x".into())).await.unwrap_err();
        assert_eq!(refused.kind, "too-many-requests");
        held.pop();
        held.push(passwords.turn(ada).await.ok().unwrap());
        for other in OF_NAME..WAITING {
            let share = Share::of_manager(&other.to_string());
            held.push(passwords.turn(share).await.ok().unwrap());
        }
        let other = Share::of_name("bob");
        assert!(passwords.turn(other).await.is_err());
        held.clear();
        let waiting = passwords.waiting.lock();
        assert_eq!((waiting.all, waiting.of.len()), (0, 0));
    }
}
