//! Sources win over each other, and mistakes are all told.

use super::*;

fn env(pairs: &[(&str, &str)]) -> Texts {
    let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
    pairs.iter().map(own).collect()
}

fn told(pairs: &[(&str, &str)]) -> Vec<String> {
    let faults = Settings::load(&Flags::default(), env(pairs)).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn servers_of_tools_and_models_on_this_machine_need_consent_where_there_are_users() {
    let allowed = |pairs: &[(&str, &str)]| {
        let settings = Settings::load(&Flags::default(), env(pairs)).unwrap();
        (
            settings.tool.private_addresses,
            settings.llm.private_addresses,
        )
    };
    let users = ("THREADGRAPH_AUTH", "iam");
    let tools = |value| ("THREADGRAPH_TOOL__PRIVATE_ADDRESSES", value);
    let models = |value| ("THREADGRAPH_LLM__PRIVATE_ADDRESSES", value);
    assert_eq!(allowed(&[]), (true, true));
    assert_eq!(allowed(&[users]), (false, false));
    assert_eq!(allowed(&[tools("false")]), (false, true));
    assert_eq!(allowed(&[models("false")]), (true, false));
    assert_eq!(allowed(&[users, tools("true")]), (true, false));
    assert_eq!(allowed(&[users, models("true")]), (false, true));
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    let text = "drain-seconds = 7\nlisten = \"127.0.0.1:2\"\n[gateway]\nsockets = 9\n[rag]\nvector_weight = 2\n";
    std::fs::write(&file, text).unwrap();
    let flags = Flags {
        config: Some(file),
        listen: Some("127.0.0.1:9999".into()),
        ..Flags::default()
    };
    let vars = env(&[
        ("THREADGRAPH_LISTEN", "127.0.0.1:1"),
        ("THREADGRAPH_LOG__FORMAT", "json"),
        ("THREADGRAPH_AGENT__MAX_ITERATIONS", "4"),
        ("THREADGRAPH_RAG__DOC_LIMIT", "7"),
        ("THREADGRAPH_RAG__EDGE_LIMIT", ""),
        ("THREADGRAPH_EMBEDDINGS__PROVIDER", "ollama"),
        ("OLLAMA_HOST", "h"),
        // Read by the commands, and passed by.
        ("THREADGRAPH_URL", "http://h:1/"),
        ("THREADGRAPH_TOKEN", "t"),
        ("THREADGRAPH_BOOTSTRAP_CODE", "0123"),
    ]);
    let settings = Settings::load(&flags, vars).unwrap();
    assert_eq!(settings.listen.port(), 9999);
    assert_eq!(settings.log.format, LogFormat::Json);
    assert_eq!(settings.drain(), Duration::from_secs(7));
    assert_eq!(
        (settings.gateway.sockets, settings.gateway.strangers),
        (9, 512)
    );
    assert_eq!(settings.agent.max_iterations, 4);
    assert_eq!((settings.rag.doc_limit, settings.rag.edge_limit), (7, 25));
    assert_eq!(settings.rag.vector_weight, 2.0);
    assert_eq!(settings.bus, BusChoice::Embedded);
    assert_eq!(settings.embeddings.describe(), "mxbai-embed-large (Ollama)");
    assert_eq!(settings.llm.describe(), "granite4:350m (Ollama)");
}

#[test]
fn processors_are_left_to_others_on_a_broker_only() {
    let without = ("THREADGRAPH_WITHOUT", "chunker");
    let [fault] = &told(&[without])[..] else {
        panic!("one fault");
    };
    assert!(
        fault.starts_with("without: must be empty on the embedded bus"),
        "{fault}"
    );
    let bus = ("THREADGRAPH_BUS", "amqp://u:p@h/");
    assert!(Settings::load(&Flags::default(), env(&[without, bus])).is_ok());
}

#[test]
fn some_services_alone_need_a_broker() {
    let some = Services::some(vec!["config".to_owned()]);
    let told = |pairs: &[(&str, &str)], services: &Services| {
        let settings = Settings::load(&Flags::default(), env(pairs)).unwrap();
        settings.unshared(services).map(|fault| fault.to_string())
    };
    assert_eq!(
        told(&[], &some).as_deref(),
        Some(
            "bus: `serve` needs a broker that processes share (--bus amqp://user:password@host/); `threadgraph up` \
             runs everything in one process"
        )
    );
    assert_eq!(told(&[], &Services::all()), None);
    assert_eq!(told(&[("THREADGRAPH_BUS", "amqp://u:p@h/")], &some), None);
}

/// Of a shell that is set up for clients of the gateway.
#[test]
fn a_gateway_that_would_ask_itself_or_send_its_key_elsewhere_does_not_start() {
    let own = ("OPENAI_BASE_URL", "http://127.0.0.1:8888/v1");
    let key = ("OPENAI_API_KEY", "tg_hidden");
    let [fault] = &told(&[own, key])[..] else {
        panic!("one fault");
    };
    assert!(
        fault.starts_with("OPENAI_BASE_URL: is the address of this gateway"),
        "{fault}"
    );
    let [fault] = &told(&[key])[..] else {
        panic!("one fault");
    };
    assert!(
        fault.starts_with("OPENAI_API_KEY: is a key of a Threadgraph gateway"),
        "{fault}"
    );
    let elsewhere = ("THREADGRAPH_LISTEN", "127.0.0.1:9999");
    assert!(Settings::load(&Flags::default(), env(&[own, key, elsewhere])).is_ok());
}

/// What could be set before sections were structs.
#[test]
fn every_earlier_setting_is_still_one() {
    let earlier = [
        ("listen", "127.0.0.1:1"),
        ("data_dir", "/d"),
        ("bus", "amqp://u:p@h:1/v"),
        ("mode", "interop"),
        ("auth", "iam"),
        ("durability", "power"),
        ("log.filter", "debug"),
        ("log.format", "json"),
        ("drain_seconds", "600"),
        ("agent.max_iterations", "100"),
        ("extract.parallel", "1024"),
        ("llm.provider", "anthropic"),
        ("llm.url", "http://h"),
        ("llm.model", "m"),
        ("llm.key", "k"),
        ("embeddings.provider", "openai"),
        ("embeddings.model", "m"),
        ("embeddings.path", "/p"),
        ("embeddings.url", "http://h"),
        ("embeddings.key", "k"),
        ("embeddings.dimensions", "16384"),
        ("embeddings.batch", "2048"),
        ("embeddings.concurrency", "256"),
        ("embeddings.cache_mb", "65536"),
        ("vectors.memory_mb", "1048576"),
        ("graph.memory_mb", "1073741824"),
        ("graph.query_memory_mb", "1048576"),
        ("graph.queries_memory_mb", "1048576"),
        ("graph.workspace_quads", "1099511627776"),
        ("graph.workspace_mb", "1073741824"),
        ("rows.workspace_rows", "1099511627776"),
        ("config.restore_hours", "8784"),
        ("flow.dead_letter_records", "1073741824"),
        ("flow.dead_letter_mb", "1048576"),
        ("library.documents", "1099511627776"),
        ("library.content_mb", "1073741824"),
        ("rag.entity_limit", "100000"),
        ("rag.triple_limit", "1"),
        ("rag.max_subgraph_size", "1"),
        ("rag.max_path_length", "99"),
        ("rag.edge_score_limit", "1"),
        ("rag.edge_limit", "1"),
        ("rag.max_reranker_input", "1"),
        ("rag.max_reranker_text_length", "1"),
        ("rag.doc_limit", "1"),
        ("rag.fetch_limit", "1000"),
        ("rag.retrieval_mode", "hybrid"),
        ("rag.vector_weight", "1000"),
        ("rag.keyword_weight", "0.001"),
        ("rag.rerank_diversity_mode", "mmr"),
        ("rag.rerank_diversity_lambda", "1"),
        ("rag.reranker_url", "https://h/r"),
        ("rag.reranker_key", "k"),
        ("rag.reranker_model", "m"),
        ("rag.reranker_dialect", "tei"),
    ];
    let name = |key: &str| format!("THREADGRAPH_{}", key.to_uppercase().replace('.', "__"));
    let vars = earlier
        .iter()
        .map(|(key, text)| (name(key), (*text).to_owned()));
    let settings = Settings::load(&Flags::default(), vars.collect()).unwrap();
    assert_eq!(settings.durability, Durability::Power);
    assert_eq!(settings.graph.workspace_quads, 1 << 40);
}

#[test]
fn all_mistakes_are_reported_with_their_keys() {
    let faults = told(&[
        ("THREADGRAPH_LISTEN", "0.0.0.0:8888"),
        ("THREADGRAPH_BUS", "kafka"),
        ("THREADGRAPH_LOG__FORMAT", "xml"),
        ("THREADGRAPH_TYPO", "1"),
        ("THREADGRAPH_RAG__RETRIEVAL_MODE", "odd"),
        ("THREADGRAPH_EMBEDDINGS__PROVIDER", "magic"),
        ("THREADGRAPH_RAG__RERANKER_URL", "ftp://x"),
        ("OLLAMA_HOST", "ftp://x"),
    ]);
    assert_eq!(
        faults,
        [
            "typo: is not a setting; `threadgraph settings` prints those there are",
            "bus: must be embedded or amqp://user:password@host:port/vhost",
            "embeddings.provider: must be one of lexical, static, openai, ollama",
            "log.format: must be one of text, json",
            "rag.retrieval_mode: must be one of vector, keyword, hybrid",
            "OLLAMA_HOST: must start with http:// or https://",
            "rag.reranker_url: must start with http:// or https://",
            "listen: other machines could reach this address and auth is none: set auth to iam (--auth iam), or \
             listen on 127.0.0.1",
        ]
    );
    for empty in ["THREADGRAPH_AUTH", "THREADGRAPH_BUS", "THREADGRAPH_LISTEN"] {
        assert_eq!(told(&[(empty, "")]).len(), 1, "{empty}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_as_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.toml");
    std::fs::write(&path, "listen = ").unwrap();
    let flags = Flags {
        config: Some(path.clone()),
        ..Flags::default()
    };
    let faults = Settings::load(&flags, env(&[])).unwrap_err();
    assert_eq!(faults[0].key, path.display().to_string());
}

#[test]
fn a_bound_of_the_gateway_out_of_its_range_is_refused_by_its_key() {
    for (key, text, range) in [
        ("SOCKETS", "0", "1 to 1,000,000"),
        ("FRAME_BYTES", "52428801", "4,096 to 52,428,800"),
        ("STRANGER_BYTES", "-1", "1,024 to 1,048,576"),
        ("PARSING_MB", "1.5", "64 to 1,048,576"),
        ("OUTGOING_FRAMES", "many", "1 to 65,536"),
    ] {
        let name = format!("THREADGRAPH_GATEWAY__{key}");
        let wanted = format!(
            "gateway.{}: must be a whole number from {range}",
            key.to_lowercase()
        );
        assert_eq!(told(&[(name.as_str(), text)]), [wanted]);
    }
}

/// Of the broker and of each provider: named, not written; and never shown.
#[test]
fn secrets_may_be_named_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("file:{}", path.display())
    };
    let bus = named("bus", "amqp://u:s3cret@h:1/\n");
    let key = named("key", "s3cret-key\n");
    let mut vars = vec![
        ("THREADGRAPH_BUS", bus.as_str()),
        ("THREADGRAPH_LLM__PROVIDER", "openai"),
        ("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai"),
        ("THREADGRAPH_RAG__RERANKER_URL", "https://h/r"),
    ];
    let keys = ["LLM__KEY", "EMBEDDINGS__KEY", "RAG__RERANKER_KEY"];
    let keys = keys.map(|key| format!("THREADGRAPH_{key}"));
    vars.extend(keys.iter().map(|name| (name.as_str(), key.as_str())));
    let settings = Settings::load(&Flags::default(), env(&vars)).unwrap();
    let BusChoice::Amqp(url) = &settings.bus else {
        panic!("a broker");
    };
    assert_eq!(url.expose(), "amqp://u:s3cret@h:1/");
    for held in [
        &settings.llm.key,
        &settings.embeddings.key,
        &settings.rag.reranker_key,
    ] {
        assert_eq!(held.as_ref().map(|key| key.expose()), Some("s3cret-key"));
    }
    let shown = format!("{settings:?}{}", serde_json::to_string(&settings).unwrap());
    assert!(!shown.contains("s3cret"), "{shown}");

    let absent = format!("file:{}/absent", folder.path().display());
    for (name, key) in [("BUS", "bus"), ("LLM__KEY", "llm.key")] {
        let name = format!("THREADGRAPH_{name}");
        let wanted = format!("{key}: names a file that cannot be read (file:PATH)");
        assert_eq!(told(&[(name.as_str(), absent.as_str())]), [wanted]);
    }
}

#[test]
fn the_brokers_password_is_never_shown() {
    let flags = Flags {
        bus: Some("amqp://u:secret@h:1/".into()),
        ..Flags::default()
    };
    let settings = Settings::load(&flags, Texts::new()).unwrap();
    assert!(!format!("{settings:?}").contains("secret"));
}
