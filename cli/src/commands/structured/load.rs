//! `tg load-structured-data`: CSV, JSON and XML files become rows. One mode at a time, or all with `--auto`:
//! find the schema, write the descriptor, parse, load.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use tg_schemas::table::Table;

use super::descriptor::{Descriptor, LARGEST_BATCH};
use super::diagnose::{describe, matches, sample, schemas, table};
use super::fit::suits;
use super::make::{Made, Order};
use super::parsed::{PREVIEW, Parsed};
use super::rows::{Counts, Plan, Step};
use super::steps::Steps;
use crate::args::{Common, Options, subject};
use crate::client::{Error, Import, Result, Settled};
use crate::commands::collections::make_known;
use crate::files::read_text;
use crate::registry::Command;
use crate::session::Session;

/// Rows of a batch, if nobody says.
const BATCH: u64 = 40;
/// Records that are told one by one; all of them with `--verbose`.
const TOLD: u64 = 5;

subject!(
    file
    /// What is loaded.
    DataFile,
    "CSV, JSON or XML file",
    short = 'i',
    long = "input"
);

/// Arguments of `tg load-structured-data`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(
    ["discover_schema", "generate_descriptor", "parse_only", "load", "auto"],
)))]
pub struct LoadStructuredData {
    #[command(flatten)]
    common: Common,
    /// Flow that is asked about the data and takes the rows
    #[arg(
        short = 'f',
        long = "flow-id",
        visible_alias = "flow",
        default_value = "default",
        value_name = "ID"
    )]
    flow: String,
    /// Collection of the rows
    #[arg(short = 'C', long, default_value = "default", value_name = "ID")]
    collection: String,
    #[command(flatten)]
    input: DataFile,
    /// Descriptor: how the file is read and what its records become
    #[arg(short = 'd', long, value_name = "FILE")]
    descriptor: Option<PathBuf>,
    /// Say which schemas the data may fit
    #[arg(long)]
    discover_schema: bool,
    /// Write a descriptor for the data
    #[arg(long)]
    generate_descriptor: bool,
    /// Show the rows without loading them
    #[arg(long, requires = "descriptor")]
    parse_only: bool,
    /// Load the rows
    #[arg(long, requires = "descriptor")]
    load: bool,
    /// Find the schema, or propose one, make a descriptor and load the rows
    #[arg(long, conflicts_with = "descriptor")]
    auto: bool,
    /// With --auto: make a schema of that name from the file, without asking
    #[arg(
        long,
        value_name = "NAME",
        requires = "auto",
        conflicts_with = "schema_name"
    )]
    make_schema: Option<String>,
    /// File for the descriptor or the parsed rows
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Records that --parse-only reads
    #[arg(long, default_value_t = 100, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    sample_size: u64,
    /// Characters of the file that the flow is shown
    #[arg(long, default_value_t = 500, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample_chars: u32,
    /// Schema of the rows [default: what the descriptor says, or the one that fits best]
    #[arg(long, value_name = "KEY")]
    schema_name: Option<String>,
    /// Check everything, load nothing
    #[arg(long)]
    dry_run: bool,
    /// Tell every record that is refused
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Rows in one batch [default: what the descriptor says, or 40]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=LARGEST_BATCH))]
    batch_size: Option<u64>,
    /// Records that may be refused before it stops [default: what the descriptor says, or 100]
    #[arg(long, value_name = "COUNT")]
    max_errors: Option<u64>,
    /// File for refused records and why, a JSON document a line
    #[arg(long, value_name = "FILE")]
    error_file: Option<PathBuf>,
}

impl Command for LoadStructuredData {
    const NAME: &'static str = "load-structured-data";
    const ABOUT: &'static str = "Load CSV, JSON or XML data as rows";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        // Nobody is asked about a file that cannot be read.
        File::open(self.input.path()).map_err(|error| Error::file(self.input.path(), error))?;
        if self.discover_schema {
            self.discover(session).await
        } else if self.generate_descriptor {
            self.generate(session).await
        } else if self.auto {
            self.all(session).await
        } else {
            let path = self.descriptor.clone();
            let path = path.ok_or_else(|| Error::Usage("--descriptor is required".to_owned()))?;
            let descriptor = Descriptor::read(&read_text(&path)?);
            let descriptor = descriptor.map_err(|why| Error::file(&path, why))?;
            match self.parse_only {
                true => self.parse(session, descriptor).await,
                false => self.fill(session, descriptor, &path, None).await,
            }
        }
    }
}

impl LoadStructuredData {
    fn sample(&self) -> Result<String> {
        sample(
            self.input.path(),
            usize::try_from(self.sample_chars).unwrap_or(usize::MAX),
        )
    }

    async fn discover(&self, session: &mut Session) -> Result<()> {
        let found = matches(&session.http()?, &self.flow, &self.sample()?).await?;
        if found.is_empty() {
            return Err(none_fits());
        }
        let shown = json!({"schema-matches": found});
        session.out.show(&shown, || match found.as_slice() {
            [one] => format!("Best matching schema: {one}"),
            many => format!(
                "Matching schemas, the best first:\n  - {}",
                many.join("\n  - ")
            ),
        })
    }

    async fn generate(&self, session: &mut Session) -> Result<()> {
        let (descriptor, _) = self.described(session).await?;
        if let Err(why) = Descriptor::of(&descriptor) {
            session
                .out
                .talk(format!("Mend this before you load with it: {why}"));
        }
        match &self.output {
            Some(path) => self.save(session, path, &descriptor),
            None => session.out.json(&descriptor),
        }
    }

    fn save(&self, session: &mut Session, path: &Path, descriptor: &Value) -> Result<()> {
        let text = serde_json::to_string_pretty(descriptor).unwrap_or_default() + "\n";
        std::fs::write(path, text).map_err(|error| Error::file(path, error))?;
        session
            .out
            .talk(format!("Descriptor saved to {}", path.display()));
        Ok(())
    }

    /// A descriptor that the flow made, and the schema it is for.
    async fn described(&self, session: &mut Session) -> Result<(Value, String)> {
        let (http, sample) = (session.http()?, self.sample()?);
        let schema = match &self.schema_name {
            Some(name) => name.clone(),
            None => self.best(session, &sample).await?.ok_or_else(none_fits)?,
        };
        let descriptor = describe(&http, &self.flow, self.input.path(), &sample, &schema).await?;
        Ok((descriptor, schema))
    }

    /// The schema that the flow thinks fits best.
    async fn best(&self, session: &mut Session, sample: &str) -> Result<Option<String>> {
        let found = matches(&session.http()?, &self.flow, sample).await?;
        let best = found.into_iter().next();
        if let Some(best) = &best {
            session.out.talk(format!("Schema: {best}"));
        }
        Ok(best)
    }

    /// A descriptor, and the schema where it was made here; `None` when the user wants neither.
    async fn found(&self, session: &mut Session) -> Result<Option<(Value, Option<Table>)>> {
        let (http, sample) = (session.http()?, self.sample()?);
        let schema = match &self.schema_name {
            Some(name) => Some(name.clone()),
            None if self.make_schema.is_some() => None,
            // Where there are none nobody needs to be asked which one fits.
            None if schemas(&http).await?.is_empty() => None,
            None => self.best(session, &sample).await?,
        };
        if let Some(schema) = schema {
            let descriptor =
                describe(&http, &self.flow, self.input.path(), &sample, &schema).await?;
            return Ok(Some((descriptor, None)));
        }
        let order = Order {
            file: self.input.path(),
            name: self.make_schema.as_deref(),
            flow: &self.flow,
            dry_run: self.dry_run,
        };
        let made = order.fill(session).await?;
        Ok(made.map(|Made { descriptor, table }| (descriptor, Some(table))))
    }

    async fn all(&self, session: &mut Session) -> Result<()> {
        let Some((value, made)) = self.found(session).await? else {
            return Ok(());
        };
        if let Some(path) = &self.output {
            self.save(session, path, &value)?;
        }
        let descriptor = Descriptor::of(&value).map_err(|why| {
            Error::Check(format!(
                "the descriptor that the flow made cannot be used: {why}"
            ))
        })?;
        let preview = Plan {
            limit: PREVIEW,
            max_errors: PREVIEW,
            error_file: None,
            ..self.plan(Descriptor::of(&value).map_err(Error::Check)?, None)
        };
        let (rows, _) = self.collect(session, preview).await?;
        for (at, row) in rows.iter().enumerate() {
            session.out.talk(format!("Record {}: {row}", at + 1));
        }
        self.fill(session, descriptor, Path::new("the descriptor"), made)
            .await
    }

    /// The first rows, for `--auto` to show.
    async fn collect(&self, session: &mut Session, plan: Plan) -> Result<(Vec<Value>, Counts)> {
        let mut rows = Vec::new();
        let mut steps = Steps::of(plan);
        while let Some(step) = steps.next(session).await? {
            if let Step::Batch(batch) = step {
                rows.extend(batch);
            }
        }
        Ok((rows, steps.counts().await?))
    }

    fn plan(&self, descriptor: Descriptor, table: Option<Table>) -> Plan {
        let batch = self.batch_size.or(descriptor.batch_size).unwrap_or(BATCH);
        let named = self.error_file.clone();
        Plan {
            input: self.input.path().to_owned(),
            table,
            batch: usize::try_from(batch).unwrap_or(1),
            limit: u64::MAX,
            max_errors: self.max_errors.or(descriptor.max_errors).unwrap_or(100),
            error_file: named.or_else(|| descriptor.error_output.clone().map(PathBuf::from)),
            descriptor,
        }
    }

    fn schema(&self, descriptor: &Descriptor) -> Option<String> {
        let named = Some(descriptor.schema_name.clone()).filter(|name| !name.is_empty());
        self.schema_name.clone().or(named)
    }

    fn frame(&self, schema: &str, confidence: f64, first: u64, rows: Value) -> Value {
        json!({
            "metadata": {"id": format!("parsed-{first}"), "metadata": [], "collection": self.collection},
            "schema_name": schema,
            "values": rows,
            "confidence": confidence,
            "source_span": "",
        })
    }

    /// The rows as they would be sent, one by one.
    async fn parse(&self, session: &mut Session, descriptor: Descriptor) -> Result<()> {
        let schema = self
            .schema(&descriptor)
            .unwrap_or_else(|| "default".to_owned());
        let (format, fields) = (descriptor.format.name(), descriptor.mappings.len());
        let confidence = descriptor.confidence;
        let plan = Plan {
            limit: self.sample_size,
            ..self.plan(descriptor, None)
        };
        let mut target = Parsed::open(self.output.as_deref())?;
        let mut steps = Steps::of(plan);
        let mut told = 0;
        while let Some(step) = steps.next(session).await? {
            match step {
                Step::Batch(rows) => {
                    for row in rows {
                        let row = self.frame(&schema, confidence, target.count + 1, row);
                        target.put(session, &row)?;
                    }
                }
                Step::Wrong(why) => self.tell(session, &mut told, &why),
            }
        }
        let counts = steps.counts().await?;
        target.end(session)?;
        session.out.talk(format!(
            "Parsed {} records as {format}: {} rows of {schema}, {fields} fields, {} refused.",
            counts.records, counts.rows, counts.refused
        ));
        Ok(())
    }

    /// Loads the rows, or only looks whether they could be.
    async fn fill(
        &self,
        session: &mut Session,
        descriptor: Descriptor,
        from: &Path,
        made: Option<Table>,
    ) -> Result<()> {
        let schema = self.schema(&descriptor).ok_or_else(|| {
            Error::file(
                from,
                "output.schema_name: is required, here or as --schema-name",
            )
        })?;
        let table = match made {
            Some(made) => made,
            None => table(&session.http()?, &schema).await?,
        };
        suits(&descriptor, &table).map_err(|why| Error::file(from, why))?;
        if !self.dry_run {
            make_known(session, &self.collection).await?;
        }
        let confidence = descriptor.confidence;
        let plan = self.plan(descriptor, Some(table));
        let progress = session.out.progress("rows", None);
        let mut steps = Steps::of(plan);
        let mut import: Option<Import> = None;
        let (mut told, mut sent) = (0, 0);
        let outcome = async {
            while let Some(step) = steps.next(session).await? {
                let rows = match step {
                    Step::Wrong(why) => {
                        progress.suspend(|| self.tell(session, &mut told, &why));
                        continue;
                    }
                    Step::Batch(rows) => rows,
                };
                let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                if !self.dry_run {
                    let import = match &mut import {
                        Some(import) => import,
                        None => import.insert(session.import(&self.flow, "rows").await?),
                    };
                    let frame = self.frame(&schema, confidence, sent + 1, rows.into());
                    import.send(&frame).await?;
                }
                sent += count;
                progress.inc(count);
            }
            let counts = steps.counts().await;
            // What was handed over before the file turned out bad is still confirmed.
            if let Some(import) = &mut import {
                import.end().await?;
            }
            counts
        }
        .await;
        progress.finish_and_clear();
        let counts = outcome.inspect_err(|_| {
            if let Some(confirmed) = import.as_ref().and_then(Import::confirmed) {
                session
                    .out
                    .talk(format!("{confirmed} of {sent} rows sent were confirmed."));
            }
        })?;
        let confirmed = import.as_ref().and_then(Import::confirmed);
        let settled = import.and_then(Import::into_settled);
        session.tell_settled(settled.as_ref(), "rows");
        self.done(session, &schema, &counts, (confirmed, settled.as_ref()))?;
        settled.map_or(Ok(()), |settled| settled.check("rows"))
    }

    fn done(
        &self,
        session: &mut Session,
        schema: &str,
        counts: &Counts,
        (confirmed, settled): (Option<u64>, Option<&Settled>),
    ) -> Result<()> {
        let shown = json!({
            "schema": schema, "collection": self.collection, "flow": self.flow,
            "records": counts.records, "rows": counts.rows, "refused": counts.refused,
            "flawed": counts.flawed, "confirmed": confirmed, "settled": settled.map(Settled::show),
            "dry-run": self.dry_run,
        });
        session.out.show(&shown, || {
            let verb = if self.dry_run { "Would load" } else { "Loaded" };
            let mut text = format!(
                "{verb} {} rows of {schema} into collection {} ({} records refused).",
                counts.rows, self.collection, counts.refused
            );
            if counts.flawed > 0 {
                text += &format!(
                    " {} of them have flaws that the descriptor lets pass.",
                    counts.flawed
                );
            }
            text
        })
    }

    /// Says what is wrong with a record, but not a thousand times.
    fn tell(&self, session: &mut Session, told: &mut u64, why: &str) {
        *told += 1;
        if self.verbose || *told <= TOLD {
            session.out.talk(format!("  {why}"));
        } else if *told == TOLD + 1 {
            session.out.talk("  more of them: --verbose shows all");
        }
    }
}

fn none_fits() -> Error {
    Error::Missing("no schema of this workspace fits the data".to_owned())
}
