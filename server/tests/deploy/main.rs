//! What is in `deploy/` is made from the table of deployed services: manifests for Kubernetes, a file for Compose, alert rules
//! and a dashboard. The test fails where a file differs from what the table gives, and where there is one that nobody makes.
//! `UPDATE=1 cargo test -p tg-server --test deploy` writes them.

mod alerts;
mod all;
mod checks;
mod compose;
mod manifests;
mod memory;
mod monitoring;
mod pod;
mod policies;
mod production;
mod yaml;
