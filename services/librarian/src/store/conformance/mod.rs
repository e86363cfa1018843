//! What every adapter of [`LibraryStore`] does, and in `contents` what one of the contents does. A new one is added by one
//! line at the end.

mod collections;
mod contents;
mod documents;
mod fingerprints;
mod runs;
mod uploads;

use std::sync::Arc;

use tg_schemas::ErrorCode;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::blob::BlobId;

use super::documents::{New, Prepared};
use super::{LibraryStore, SqliteLibrary};
use crate::engine::asker::Asker;

/// The store that is looked at.
type Store = Arc<dyn LibraryStore>;

fn asker(question: &str) -> Asker {
    Asker {
        workspace: "w".into(),
        question: question.into(),
        now: 1,
        ..Asker::default()
    }
}

fn content(text: &str) -> Prepared {
    Prepared {
        hash: BlobId::of(text.as_bytes()),
        size: text.len() as u64,
        body: Some(text.into()),
    }
}

/// Content in a file of so many bytes.
fn file(name: &str, size: u64) -> Prepared {
    Prepared {
        hash: BlobId::of(name.as_bytes()),
        size,
        body: None,
    }
}

fn document(id: &str, text: &str) -> New {
    let content = content(text);
    let document = DocumentMetadata {
        id: id.into(),
        time: 3,
        kind: "text/plain".into(),
        title: format!("title of {id}"),
        tags: vec!["a".into()],
        document_type: "source".into(),
        content_hash: content.hash.to_string(),
        ..DocumentMetadata::default()
    };
    (document, content)
}

fn part(id: &str, parent: &str, text: &str) -> New {
    let (mut document, content) = document(id, text);
    document.parent_id = parent.into();
    document.document_type = "chunk".into();
    (document, content)
}

fn code<T>(outcome: Result<T, StorageError>) -> ErrorCode {
    match outcome.err() {
        Some(fault) => fault.code(),
        None => panic!("it is not refused"),
    }
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                documents::a_document_belongs_to_its_workspace,
                documents::a_repeat_is_told_from_a_duplicate,
                documents::known_documents_stay_when_many_are_added,
                documents::a_document_is_given_its_content,
                documents::a_change_is_whole,
                documents::parts_need_their_parent_and_go_with_it,
                documents::a_walk_comes_in_pages_in_the_order_they_came,
                documents::places_come_in_the_order_of_the_ids_or_not_at_all,
                documents::what_is_kept_is_counted,
                documents::content_that_nobody_uses_is_named_once,
                documents::the_oldest_answers_go,
                documents::a_purge_leaves_nothing_and_buries_collections,
                uploads::a_session_is_begun_once,
                uploads::a_session_that_says_its_hash_is_gone_on_with,
                uploads::a_session_counts_for_what_it_has_more,
                uploads::parts_are_known_until_they_are_dropped,
                uploads::a_completion_is_noted_before_it_is_done,
                uploads::a_document_that_came_first_ends_the_session,
                uploads::sessions_come_in_pages,
                runs::a_processing_is_noted_once,
                runs::a_request_whose_effect_is_gone_is_refused,
                runs::a_run_starts_and_ends_by_what_is_told,
                runs::runs_wait_for_each_other,
                runs::a_failure_may_be_made_good,
                runs::a_run_is_taken_back_once,
                runs::a_run_takes_the_place_of_another_once,
                runs::the_vocabulary_is_written_until_a_run_is_complete,
                runs::a_state_changes_only_from_the_one_that_is_meant,
                runs::what_was_processed_is_retracted_when_its_document_goes,
                fingerprints::only_who_does_something_else_reads_again,
                fingerprints::what_goes_back_is_made_anew_and_the_other_goes,
                fingerprints::what_was_not_finished_or_noted_is_done_again_and_cleared,
                fingerprints::another_place_is_another_text,
                fingerprints::what_failed_leaves_what_was_there,
                fingerprints::what_another_flow_made_stays,
                fingerprints::what_another_flow_had_before_it_failed_stays,
                fingerprints::what_was_processed_is_told_with_what_changed,
                collections::a_name_that_was_deleted_gets_its_next_generation,
                collections::a_row_that_was_taken_away_is_dropped_everywhere,
                collections::a_deletion_is_pending_until_it_is_confirmed,
            );
        }
    };
    (@ $open:expr; $($of:ident :: $promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                $of::$promise(Arc::new($open)).await;
            }
        )+
    };
}

suite!(sqlite, SqliteLibrary::in_memory().unwrap());
