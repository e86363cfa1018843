//! Which service brings which processors: one table, in the order in which services start. Config is first, as
//! everything else reads it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use tg_mesh::{Mesh, Processor};

use crate::settings::{Auth, Settings};

/// Makes the processors of one service. May block: a static model's files are read.
type Construct = fn(&Mesh, &Settings) -> Result<Vec<Processor>>;

/// The options of a service that keeps something, with the place where it does.
macro_rules! kept {
    ($service:ident, $settings:ident, $options:expr) => {
        $service::Options {
            data_dir: $settings.data_dir.clone(),
            durability: $settings.durability,
            ..$options
        }
    };
}

const TABLE: [(&str, Construct); 19] = [
    ("config", |mesh, all| {
        let options = kept!(tg_config, all, all.config.clone());
        Ok(tg_config::processors(mesh, options))
    }),
    ("iam", |mesh, all| {
        let auth_mode = match all.auth {
            Auth::None => tg_iam::AuthMode::None,
            Auth::Iam => tg_iam::AuthMode::Iam,
        };
        let usual = tg_iam::Options {
            auth_mode,
            ..all.iam.clone()
        };
        Ok(tg_iam::processors(mesh, kept!(tg_iam, all, usual)))
    }),
    ("flow", |mesh, all| {
        let options = kept!(tg_flow, all, all.flow.clone());
        Ok(tg_flow::processors(mesh, options))
    }),
    ("librarian", |mesh, all| {
        let options = kept!(tg_librarian, all, all.library.clone());
        Ok(tg_librarian::processors(mesh, options))
    }),
    ("knowledge", |mesh, all| {
        let options = kept!(tg_knowledge, all, all.knowledge.clone());
        Ok(tg_knowledge::processors(mesh, options))
    }),
    ("ingest", |mesh, all| {
        let options = tg_ingest::Options::of_this_program(crate::DECODE);
        let options = options.within(&all.ingest, tg_storage::memory::MAPPED);
        Ok(tg_ingest::processors(mesh, options))
    }),
    ("graph", |mesh, all| {
        let options = kept!(tg_graph, all, all.graph.clone());
        Ok(tg_graph::processors(mesh, options))
    }),
    ("rows", |mesh, all| {
        let options = kept!(tg_rows, all, all.rows.clone());
        Ok(tg_rows::processors(mesh, options))
    }),
    ("vectors", |mesh, all| {
        let options = kept!(tg_vectors, all, all.vectors.clone());
        Ok(tg_vectors::processors(mesh, options))
    }),
    ("embeddings", |mesh, all| {
        Ok(tg_embeddings::processors(mesh, all.embeddings.clone())?)
    }),
    ("llm", |mesh, all| {
        Ok(tg_llm::processors(mesh, all.llm.clone())?)
    }),
    ("prompt", |mesh, _| {
        Ok(tg_prompt::processors(mesh, tg_prompt::Options::default()))
    }),
    ("rag", |mesh, all| {
        Ok(tg_rag::processors(mesh, all.rag.clone())?)
    }),
    ("tool", |mesh, all| {
        Ok(tg_tool::processors(mesh, all.tool.clone()))
    }),
    ("sessions", |mesh, all| {
        let options = kept!(tg_sessions, all, all.sessions.clone());
        Ok(tg_sessions::processors(mesh, options)?)
    }),
    ("threads", |mesh, all| {
        Ok(tg_threads_service::processors(mesh, all.threads.clone()))
    }),
    ("agent", |mesh, all| {
        let options = kept!(tg_agent, all, all.agent.clone());
        Ok(tg_agent::processors(mesh, options))
    }),
    ("extract", |mesh, all| {
        let options = kept!(tg_extract, all, all.extract.clone());
        Ok(tg_extract::processors(mesh, options))
    }),
    ("gateway", |mesh, _| Ok(tg_gateway::processors(mesh))),
];

/// Names that `threadgraph serve` knows, in the order in which services start.
pub const SERVICES: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TABLE[at].0;
        at += 1;
    }
    names
};

/// Which services a process runs.
#[derive(Debug, Clone)]
pub struct Services(BTreeSet<String>);

impl Services {
    /// Every one.
    pub fn all() -> Self {
        Self(SERVICES.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Those named.
    pub fn some(names: Vec<String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether a service is to run here.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Whether it runs every one, and needs no other process.
    pub fn is_all(&self) -> bool {
        self.0.len() == SERVICES.len()
    }

    /// What a process that runs these is called.
    pub fn name(&self) -> String {
        if self.is_all() {
            return "up".to_owned();
        }
        self.0.iter().cloned().collect::<Vec<_>>().join("-")
    }
}

/// Makes the processors of the chosen services, in the order in which they are to be hosted. Blocks.
///
/// # Errors
/// The first service that cannot be set up, by its name.
pub fn processors(mesh: &Mesh, settings: &Settings, services: &Services) -> Result<Vec<Processor>> {
    let mut all = Vec::new();
    for (name, construct) in TABLE {
        if services.has(name) {
            all.extend(construct(mesh, settings).context(name)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tg_mesh::embedded::EmbeddedBus;
    use tg_schemas::processors::{PROCESSORS, service_of};

    use super::*;
    use crate::deployed::DEPLOYED;
    use crate::settings::Flags;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_the_table_says_is_hosted_has_its_handlers() {
        let dir = tempfile::tempdir().unwrap();
        let flags = Flags {
            data_dir: Some(dir.path().display().to_string()),
            ..Flags::default()
        };
        let settings = Settings::load(&flags, Default::default()).unwrap();
        let bus = Arc::new(EmbeddedBus::in_memory());
        let host = tg_testkit::place::host(bus).await;
        let all = processors(host.mesh(), &settings, &Services::all()).unwrap();
        let here: BTreeSet<_> = all.iter().map(|hosted| hosted.declared().id).collect();
        let declared = PROCESSORS.iter().filter(|declared| declared.hosted);
        assert_eq!(here, declared.map(|declared| declared.id).collect());
        for hosted in &all {
            let left: Vec<_> = hosted.unserved().map(|spec| spec.name).collect();
            assert!(left.is_empty(), "{}: {left:?}", hosted.declared().id);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_table_of_deployed_services_is_what_they_host() {
        let dir = tempfile::tempdir().unwrap();
        let flags = Flags {
            data_dir: Some(dir.path().display().to_string()),
            ..Flags::default()
        };
        let settings = Settings::load(&flags, Default::default()).unwrap();
        let host = tg_testkit::place::host(Arc::new(EmbeddedBus::in_memory())).await;
        assert_eq!(DEPLOYED.map(|one| one.name), SERVICES);
        for (told, (_, construct)) in DEPLOYED.iter().zip(TABLE) {
            let hosted = construct(host.mesh(), &settings).unwrap();
            let ids: BTreeSet<_> = hosted.iter().map(|one| one.declared().id).collect();
            let leases: BTreeSet<_> = hosted.iter().filter_map(Processor::lease).collect();
            assert_eq!(
                ids,
                told.processors.iter().copied().collect(),
                "{}",
                told.name
            );
            for id in told.processors {
                assert_eq!(service_of(id), Some(told.name), "{id}");
            }
            assert_eq!(
                leases,
                told.stores.iter().copied().collect(),
                "{}",
                told.name
            );
        }
    }

    /// What a service may reach outside follows from what it is built with.
    #[test]
    fn services_with_a_client_of_outside_servers_are_told_so() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../services");
        for told in DEPLOYED {
            let manifest = root.join(told.name).join("Cargo.toml");
            let manifest = std::fs::read_to_string(manifest).unwrap();
            let used = manifest.split("[dev-dependencies]").next().unwrap();
            let outside = ["\ntg-provider-http", "\nreqwest"];
            let reaches = outside.iter().any(|name| used.contains(name));
            // Sessions reads the addresses of LLM services as their client does, and asks none.
            let reaches = reaches && told.name != "sessions";
            assert_eq!(reaches, told.outside, "{}", told.name);
        }
    }
}
