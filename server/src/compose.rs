//! Which service brings which processors.

use anyhow::{Context, Result};
use tg_mesh::{Mesh, Processor};

use crate::process::{Services, durability};
use crate::settings::{Auth, Settings};

/// What a process hosts.
pub struct Composed {
    /// In the order they are hosted: config first, as everything else reads it.
    pub processors: Vec<Processor>,
    /// The model that answers, for the greeting.
    pub model: String,
}

/// Builds the processors of the chosen services.
pub async fn processors(mesh: &Mesh, settings: &Settings, services: &Services) -> Result<Composed> {
    let dir = settings.data_dir.as_path();
    let durability = durability(settings);
    let mut all = Vec::new();
    if services.has("config") {
        let options = tg_config::Options {
            data_dir: dir.to_owned(),
            durability,
            grace: settings.restore_within,
        };
        all.extend(tg_config::processors(mesh, options).context("config")?);
    }
    if services.has("iam") {
        let regime = match settings.auth {
            Auth::None => tg_iam::Regime::None,
            Auth::Iam => tg_iam::Regime::Iam,
        };
        all.extend(tg_iam::processors(regime, dir, durability).context("iam")?);
    }
    if services.has("flow") {
        let bounds = tg_flow::FlowSettings {
            quotas: tg_flow::Quotas::of_workspaces(settings.put_aside),
            ..tg_flow::FlowSettings::default()
        };
        all.extend(tg_flow::processors_with(mesh, dir, durability, bounds).context("flow")?);
    }
    if services.has("librarian") {
        let librarian = tg_librarian::processors_with(mesh, dir, durability, settings.library);
        all.extend(librarian.context("librarian")?);
    }
    if services.has("knowledge") {
        all.extend(tg_knowledge::processors(mesh, dir, durability));
    }
    if services.has("ingest") {
        let settings = tg_ingest::IngestSettings::of_this_program(crate::DECODE);
        all.extend(tg_ingest::processors(settings));
    }
    if services.has("graph") {
        all.extend(
            tg_graph::processors(mesh, dir, durability, settings.graph.clone()).context("graph")?,
        );
    }
    if services.has("rows") {
        all.extend(tg_rows::processors(
            mesh,
            dir,
            durability,
            settings.workspace_rows,
        ));
    }
    if services.has("vectors") {
        let limits = tg_vectors::Limits {
            memory: settings.vectors_memory,
            ..tg_vectors::Limits::default()
        };
        all.extend(tg_vectors::processors(mesh, dir, durability, limits));
    }
    if services.has("embeddings") {
        let chosen = settings.embeddings.clone();
        // A static model's files are read now, off the runtime's threads.
        let embedder = tokio::task::spawn_blocking(move || chosen.build()).await?;
        all.extend(tg_embeddings::processors(embedder?));
    }
    if services.has("llm") {
        let model = settings
            .provider
            .build()
            .map_err(|fault| anyhow::anyhow!("{}: {}", fault.key, fault.message))?;
        all.extend(tg_llm::processors(tg_llm::Completer::new(model)));
    }
    if services.has("prompt") {
        all.extend(tg_prompt::processors());
    }
    if services.has("rag") {
        all.extend(tg_rag::processors(settings.rag.clone()));
    }
    if services.has("tool") {
        all.extend(tg_tool::processors());
    }
    if services.has("agent") {
        let options = tg_agent::AgentSettings {
            max_iterations: settings.max_iterations as u32,
            ..tg_agent::AgentSettings::default()
        };
        all.extend(tg_agent::processors(options, dir, durability).context("agent")?);
    }
    if services.has("extract") {
        let options = tg_extract::ExtractSettings {
            parallel: settings.extract_parallel,
            ..tg_extract::ExtractSettings::default()
        };
        all.extend(tg_extract::processors(mesh, dir, durability, options));
    }
    if services.has("gateway") {
        all.extend(tg_gateway::processors());
    }
    Ok(Composed {
        processors: all,
        model: settings.provider.describe(),
    })
}
