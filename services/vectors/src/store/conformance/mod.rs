//! What every adapter does. A new one is added by one line at the end.

mod keywords;
mod points;
mod reembed;
mod refused;

use tg_collections::{Quota, WorkspaceStore};
use tg_schemas::msg::Retract;
use tg_schemas::{WorkspaceKey, WorkspaceTombstone};

use super::keywords::SqliteKeywords;
use super::points::SqlitePoints;
use crate::error::VectorError;
use crate::options::Limits;

/// Vectors that a workspace may keep in these tests.
const POINTS: Quota = Quota {
    items: 10_000,
    bytes: 2 << 20,
};
/// Chunks of its keyword index.
const CHUNKS: Quota = Quota {
    items: 20,
    bytes: 1 << 20,
};

/// How it is refused.
fn refused<T: std::fmt::Debug>(put: Result<T, VectorError>, most: &str) {
    let error = tg_schemas::Error::from(put.unwrap_err());
    assert_eq!(error.code(), tg_schemas::ErrorCode::TooLarge);
    let told = format!("of this workspace may hold at most {most}");
    assert!(error.message.ends_with(&told), "{error}");
}

fn retraction(chunks: &[&str]) -> Retract {
    Retract {
        chunks: chunks.iter().map(|chunk| (*chunk).to_owned()).collect(),
        ..Retract::default()
    }
}

/// Ends a workspace, twice, and it is known no more.
async fn end_workspace(store: &impl WorkspaceStore, name: &str) {
    let key = WorkspaceKey::new(name, 0);
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let known = async || store.workspaces().await.unwrap().contains(&name.to_owned());
    assert!(known().await);
    for _ in 0..2 {
        store.purge(&key, &proof).await.unwrap();
    }
    assert!(!known().await);
}

macro_rules! promises {
    ($suite:ident, $adapter:ident, $make:expr; $($promise:ident),* $(,)?) => {
        mod $adapter {
            use super::*;

            $(#[tokio::test]
            async fn $promise() {
                $suite::$promise(&$make).await;
            })*
        }
    };
}

macro_rules! point_store {
    ($adapter:ident, $make:expr) => {
        promises!(points, $adapter, $make;
            what_is_kept_is_found_and_may_come_again,
            what_was_made_anew_goes_and_nothing_else,
            all_of_a_collection_leaves_in_pages,
            entities_are_distinct_and_keep_their_kind_of_term,
            filters_are_exact,
            models_do_not_mix,
            equal_and_hostile_names_never_meet,
            a_dropped_generation_stays_dead,
            searches_and_writes_at_once_lose_nothing,
            a_workspace_keeps_its_quota_of_vectors_and_may_replace_them,
            and_its_quota_of_bytes_whatever_becomes_of_its_vectors,
        );
    };
}

macro_rules! reembed_store {
    ($adapter:ident, $make:expr) => {
        mod reembeds {
            use super::*;

            promises!(reembed, $adapter, $make;
                the_old_serve_until_all_of_the_new_do,
                what_is_written_and_taken_back_meanwhile_counts,
                what_changes_while_a_batch_is_made_is_made_again,
                what_was_to_go_at_the_switch_and_came_again_stays,
                what_is_made_anew_by_the_new_model_serves_from_the_switch_on,
                vectors_without_a_text_hold_it_up_until_there_are_others,
                it_may_be_given_up_and_ends_with_its_collection,
                a_workspace_that_is_full_can_change,
            );
            promises!(refused, refusals, $make;
                refused_texts_hold_up_the_switch_alone,
                refused_texts_are_left_out_and_told,
                what_is_refused_and_changes_or_goes_holds_nothing_up,
                what_is_taken_back_holds_nothing_up,
                what_comes_new_meanwhile_counts_beside_what_serves,
                what_cannot_be_kept_tells_of_no_refusal,
                entities_that_serve_are_not_counted_as_new,
            );
        }
    };
}

macro_rules! keyword_store {
    ($adapter:ident, $make:expr) => {
        promises!(keywords, $adapter, $make;
            better_matches_come_first_and_a_chunk_is_replaced,
            hostile_words_and_names_do_no_harm,
            a_word_is_found_in_each_of_its_forms,
            a_dropped_generation_stays_dead,
            a_workspace_keeps_its_quota_of_chunks_and_may_replace_them,
            and_its_quota_of_bytes_whatever_becomes_of_its_chunks,
        );
    };
}

reembed_store!(
    sqlite_points,
    SqlitePoints::in_memory(Limits {
        quota: POINTS,
        ..Limits::default()
    })
    .unwrap()
);
point_store!(
    sqlite_points,
    SqlitePoints::in_memory(Limits {
        quota: POINTS,
        ..Limits::default()
    })
    .unwrap()
);
keyword_store!(sqlite_keywords, SqliteKeywords::in_memory(CHUNKS).unwrap());
