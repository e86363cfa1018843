//! What of passwords takes long: beside the runtime, few at once. Whoever is nobody, or has no password, takes as long as
//! whoever has another one.

use std::sync::Arc;

use tg_schemas::msg::IamRequest;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use crate::attempts::{Attempt, Attempts, digest};
use crate::cached::CachedDirectory;
use crate::engine::{self, auth_failed};
use crate::password::{LONGEST, PasswordHash, Proof, Temporary};
use crate::shares::network_of;
use crate::turns::{Claim, Lane, Turn, Turns, WAITING};

/// Most at once: a login is not to take the machine.
const AT_ONCE: usize = 4;
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
    turns: Turns,
    attempts: Arc<Attempts>,
}

impl Default for Passwords {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            turns: Turns::new(cores.min(AT_ONCE)),
            attempts: Arc::default(),
        }
    }
}

impl Claim {
    /// Of who comes in by a name, from an address.
    fn of_name(name: &str, address: &str) -> Self {
        Self {
            whose: digest(name),
            most: OF_NAME,
            lane: Lane::Stranger(network_of(address)),
        }
    }

    /// Of who has come in and changes the password of their name.
    fn of_own(name: &str) -> Self {
        Self {
            lane: Lane::Known(digest(name)),
            ..Self::of_name(name, "")
        }
    }

    /// Of who manages others.
    fn of_manager(actor: &str) -> Self {
        Self {
            whose: digest(actor),
            most: OF_MANAGER,
            lane: Lane::Known(digest(actor)),
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
        let manager = Claim::of_manager(&ask.actor);
        match ask.operation.as_str() {
            "login" => {
                let kept = directory.password_of(|all| {
                    // Whoever may not come in anyway is nobody: their right password forgives no wrong ones.
                    Ok(all.named(&ask.username).filter(|user| all.is_active(user)))
                })?;
                let attempt = Attempt::new(&ask.username, &ask.client_ip);
                let claim = Claim::of_name(&ask.username, &ask.client_ip);
                worked.proof = Some(self.prove(claim, attempt, kept, &ask.password).await?);
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
                let claim = Claim::of_own(&name);
                worked.proof = Some(self.prove(claim, attempt, kept, &ask.password).await?);
                self.attempts.count(&change, Instant::now());
                worked.password = self.hash(claim, new).await?;
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
        claim: Claim,
        attempt: Attempt,
        kept: Option<Proof>,
        given: &str,
    ) -> Result<Proof, Error> {
        self.attempts.allow(&attempt, Instant::now())?;
        let given = Some(given).filter(|given| given.len() <= LONGEST);
        let given = given.ok_or_else(auth_failed)?.to_owned();
        let against = kept.as_ref().map(|kept| kept.against.clone());
        let turn = self.turns.turn(claim).await?;
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
        claim: Claim,
        password: Option<String>,
    ) -> Result<Option<PasswordHash>, Error> {
        let Some(password) = password else {
            return Ok(None);
        };
        let turn = self.turns.turn(claim).await?;
        turn.work(move || PasswordHash::of(&password))
            .await
            .map(Some)
    }
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
            turns: Turns::new(1),
            ..Passwords::default()
        };
        let kept = kept("right");
        let attempt = || Attempt::new("ada", "");
        for _ in 0..10 {
            let mut guess = Box::pin(passwords.prove(
                Claim::of_name("ada", ""),
                attempt(),
                kept.clone(),
                "wrong",
            ));
            // As far as it goes at once: it computes, and nobody waits for it.
            assert!(futures_none(&mut guess).await);
            drop(guess);
            assert_eq!(passwords.turns.all(), 1);
            let other = Claim::of_name("bob", "");
            drop(passwords.turns.turn(other).await.unwrap());
        }
        let refused = passwords
            .prove(Claim::of_name("ada", ""), attempt(), kept, "right")
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
            passwords.prove(
                Claim::of_name("ada", ""),
                Attempt::new("ada", ""),
                kept,
                given,
            )
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
    async fn of_one_name_few_compute_or_wait() {
        let passwords = Passwords {
            turns: Turns::new(WAITING),
            ..Passwords::default()
        };
        let ada = |from: &str| Claim::of_name("ada", from);
        let mut held = Vec::new();
        for from in ["10.0.0.1", "10.0.0.2"] {
            held.push(passwords.turns.turn(ada(from)).await.unwrap());
        }
        let more = passwords.hash(ada("10.0.0.3"), Some("x".into())).await;
        assert_eq!(more.unwrap_err().code(), ErrorCode::Busy);
        held.pop();
        held.push(passwords.turns.turn(ada("10.0.0.3")).await.unwrap());
        for _ in 0..OF_MANAGER {
            let boss = Claim::of_manager("boss");
            held.push(passwords.turns.turn(boss).await.unwrap());
        }
        let boss = Claim::of_manager("boss");
        assert!(passwords.turns.turn(boss).await.is_err());
        held.clear();
        assert_eq!(passwords.turns.all(), 0);
    }
}
