//! What reaches a system from processes that the test does not run: records of another release, or ones that were on
//! the way for long. They are put on the bus as such a process would, while the system under test is stopped.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tg_bus::embedded::EmbeddedBus;
use tg_bus::rabbitmq::{RabbitBus, RabbitOptions};
use tg_bus::{Bus, Envelope, Mode, PublishMode, Routed, Target};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::{Headers, Message, Topic, records};
use tg_storage::Durability;
use tg_storage::rusqlite::{Connection, OptionalExtension, params};

/// A record and where it goes.
pub type Sent = (Topic, Envelope);

/// A record of the workspace and flow `default`, or of others, as this release writes it.
///
/// # Errors
/// The topic is not one, or the record cannot be encoded.
pub fn record<M: Message>(topic: &str, headers: Headers, record: &M) -> Result<Sent> {
    let envelope = Envelope {
        headers: Arc::new(headers),
        content_type: ContentType::Avro,
        body: codec::encode(record, ContentType::Avro)?,
        ..Envelope::default()
    };
    Ok((Topic::parse(topic)?, envelope))
}

/// Publishes records to the broker, or without one to the bus in the data directory of a stopped system. Each must be
/// queued.
///
/// # Errors
/// The bus cannot be reached or opened, or a record was not queued.
pub async fn publish(broker: Option<&str>, data: &Path, all: Vec<Sent>) -> Result<()> {
    let bus: Box<dyn Bus> = match broker {
        Some(url) => {
            let options = RabbitOptions::of(Mode::Native);
            Box::new(RabbitBus::connect(url, Mode::Native, options).await?)
        }
        None => Box::new(EmbeddedBus::open(&data.join("bus"), Durability::Process)?),
    };
    for (topic, envelope) in all {
        let target = Target::Topic(topic.clone());
        let routed = bus
            .publish(&target, envelope, PublishMode::Confirmed)
            .await?;
        ensure!(routed == Routed::Queued, "{topic}: nobody reads it");
    }
    bus.close().await;
    Ok(())
}

/// A release of another time: its schema of a message, and a body in it.
pub struct Release {
    /// JSON text of the schema.
    pub schema: String,
    mark: Vec<u8>,
}

impl Release {
    /// With this schema.
    ///
    /// # Errors
    /// The text is not a schema.
    pub fn new(schema: String) -> Result<Self> {
        let hex = codec::register(&schema)?;
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
        let mark = (0..hex.len()).step_by(2).map(digits);
        Ok(Self {
            mark: mark.collect::<Result<_, _>>()?,
            schema,
        })
    }

    /// A body: the fields as Avro writes them, behind the mark of the schema.
    pub fn body(&self, fields: &[u8]) -> Vec<u8> {
        [&[0xC3, 0x01], &*self.mark, fields].concat()
    }

    /// Keeps its schema in the configuration of a stopped system, as it did when it ran.
    ///
    /// # Errors
    /// The configuration cannot be written, for example while its system runs.
    pub fn keep_schema(&self, data: &Path) -> Result<()> {
        let key = hex::encode(&self.mark);
        let count = open(data)?.execute(
            "INSERT OR REPLACE INTO config VALUES (?1, ?2, ?3, ?4)",
            params![records::WORKSPACE, records::TYPE, key, self.schema],
        )?;
        ensure!(count == 1, "no row");
        Ok(())
    }
}

/// A row of the configuration of a stopped system.
///
/// # Errors
/// The configuration cannot be read.
pub fn config_row(data: &Path, workspace: &str, kind: &str, key: &str) -> Result<Option<String>> {
    let row = open(data)?.query_row(
        "SELECT value FROM config WHERE workspace = ?1 AND type = ?2 AND key = ?3",
        params![workspace, kind, key],
        |row| row.get(0),
    );
    Ok(row.optional()?)
}

/// The one number that a query asks of a database of a system, which may run.
///
/// # Errors
/// The file is no such database, or the query does not give one number.
pub fn number(file: &Path, query: &str) -> Result<i64> {
    let database = Connection::open(file).with_context(|| format!("{}", file.display()))?;
    Ok(database.query_row(query, [], |row| row.get(0))?)
}

fn open(data: &Path) -> Result<Connection> {
    let file = data.join("config.sqlite");
    Connection::open(&file).with_context(|| format!("{}", file.display()))
}
