//! What a router reports of itself: whom it would ask now and why, who is left out and until when, and which models are
//! well. Nobody is asked for it.

use std::time::Duration;

use tokio::time::Instant;

use tg_schemas::msg::{ModelHealth, ModelRoute, RouteBackend};

use super::Router;
use crate::engine::router::choice::Strategy;
use crate::engine::router::serving::{Backend, Serves};

fn seconds(left: Duration) -> i64 {
    i64::try_from(left.as_secs_f64().ceil() as u64).unwrap_or(i64::MAX)
}

impl Router {
    /// Whom a question for a model would go to now, and why.
    pub(crate) fn explain(&self, model: Option<&str>, clock: i64) -> ModelRoute {
        let asked = model.unwrap_or(&self.usual);
        let servers = self.servers(asked);
        let health = self.health.lock();
        let now = Instant::now();
        let rests = |at: usize| {
            let server = servers.iter().find(|one| one.at == at)?;
            health.resting(&self.id(server), now)
        };
        let open = servers.iter().filter(|one| rests(one.at).is_none());
        let candidates: Vec<_> = open.map(|server| self.candidate(server, 0)).collect();
        // The turn is looked at and not taken.
        let turn = self.turn.load(std::sync::atomic::Ordering::Relaxed);
        let chosen = crate::engine::router::choice::choose(self.strategy, &candidates, turn);
        // Of one provider there are no bounds to be told.
        let bound = |number: i64| if self.alone { 0 } else { number };
        let backends = self.abouts.iter().zip(&self.backends).enumerate();
        let backends = backends.map(|(at, (about, held))| {
            let server = servers.iter().find(|one| one.at == at);
            let left = rests(at);
            let (state, reason) = match (server, left) {
                (None, _) => ("skipped", "does not serve this model".to_owned()),
                (Some(_), Some(left)) => ("skipped", format!("cooling, {} s left", seconds(left))),
                _ if chosen == Some(at) => ("chosen", self.why(about)),
                _ => ("next", "is asked where the chosen one fails".to_owned()),
            };
            let id = server.map(|server| self.id(server));
            RouteBackend {
                backend: about.name.clone(),
                provider: about.provider.clone(),
                model: server.map(|server| server.model.clone()),
                state: state.to_owned(),
                reason,
                until: left.map(|left| clock + seconds(left)),
                failures: id.map_or(0, |id| i64::from(health.failures(&id))),
                priority: i64::from(about.priority),
                active: i64::try_from(held.active()).unwrap_or(i64::MAX),
                max_concurrent: bound(i64::try_from(about.most).unwrap_or(i64::MAX)),
                tokens_left: bound(i64::try_from(held.bucket.lock().left(now)).unwrap_or(i64::MAX)),
                tokens_per_minute: bound(
                    i64::try_from(about.tokens_per_minute).unwrap_or(i64::MAX),
                ),
            }
        });
        ModelRoute {
            model: asked.to_owned(),
            strategy: match self.alone {
                true => "single",
                false => self.strategy.name(),
            }
            .to_owned(),
            chosen: chosen.map(|at| self.abouts[at].name.clone()),
            backends: backends.collect(),
        }
    }

    fn why(&self, about: &Backend) -> String {
        if self.alone {
            return "there is one provider".to_owned();
        }
        match self.strategy {
            Strategy::Failover => format!("has the lowest priority number, {}", about.priority),
            Strategy::RoundRobin => "it is its turn".to_owned(),
            Strategy::LeastLoaded => "has the most room".to_owned(),
        }
    }

    /// How it stands with models: those asked about, or those that the settings name. Others that rest are not listed: by
    /// names of their own one workspace would see what another asked for.
    pub(crate) fn health(&self, asked: &[String]) -> Vec<ModelHealth> {
        let mut all: Vec<String> = asked.to_vec();
        if all.is_empty() {
            all.push(self.usual.clone());
            for about in self.abouts.iter().filter(|_| !self.alone) {
                let own = match &about.serves {
                    Serves::Listed(names) => names.as_slice(),
                    serves if serves.has(&self.usual) => std::slice::from_ref(&self.usual),
                    _ => &[],
                };
                all.extend(own.iter().map(|name| format!("{}/{name}", about.name)));
            }
            all.sort();
            all.dedup();
        }
        all.into_iter().map(|model| self.how(model)).collect()
    }

    fn how(&self, model: String) -> ModelHealth {
        let servers = self.servers(&model);
        let health = self.health.lock();
        let left: Option<Vec<Duration>> = servers
            .iter()
            .map(|server| health.resting(&self.id(server), Instant::now()))
            .collect();
        // One that does not rest makes it available; otherwise the first that ends does.
        let reason = match left.map(|left| left.into_iter().min()) {
            None => None,
            Some(None) => Some("provider unknown".to_owned()),
            Some(Some(left)) => Some(format!("cooling, {} s left", seconds(left))),
        };
        let provider = match servers.first() {
            Some(server) => self.abouts[server.at].provider.clone(),
            None => model
                .split_once('/')
                .map_or("", |(first, _)| first)
                .to_owned(),
        };
        ModelHealth {
            model,
            provider,
            available: reason.is_none(),
            reason,
        }
    }
}
