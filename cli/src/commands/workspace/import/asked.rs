//! What `tg import-workspace` is asked for.

use clap::Args;

use crate::args::{Common, subject};

subject!(
    file
    /// What is read.
    BundleFile,
    "Bundle to read",
    short = 'i',
    long = "input"
);

/// Arguments of `tg import-workspace`.
#[derive(Debug, Args)]
pub struct ImportWorkspace {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) input: BundleFile,
    /// Flow to import and process with
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    pub(super) flow_id: String,
    /// Make the workspace and start its flow first; refused where there is a workspace of that name
    #[arg(long, conflicts_with_all = ["overwrite", "dry_run"])]
    pub(super) new: bool,
    /// Replace items and documents that are there already; nothing is removed
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Only the configuration
    #[arg(long)]
    pub(super) config_only: bool,
    /// Process the documents of the bundle, except those that this command had processed before
    #[arg(long)]
    pub(super) process: bool,
    /// Collection to process them to
    #[arg(long, default_value = "default", value_name = "ID")]
    pub(super) process_collection: String,
    /// Only check the bundle and say what would be imported
    #[arg(long)]
    pub(super) dry_run: bool,
}
