//! Black-box tests: the built binaries, a real RabbitMQ node, a scripted model server that speaks the real
//! protocol, and the official clients. One file per promise to the user.

mod bad_files;
mod traces;
mod workspaces;
mod world;

mod a_graph_over_quota_is_refused;
mod a_killed_process_is_survived;
mod a_lost_config_purges_nothing;
mod a_new_workspace_of_an_old_name_is_empty;
mod a_restore_never_empties;
mod a_torn_blob_is_mended;
mod an_upload_survives;
mod answers_hide_topology;
mod bad_documents_are_told;
mod builtin_reads_any_dataset;
mod bundles_carry_workspaces;
mod configuration_of_any_size;
mod cores_move_between_systems;
mod disabling_keeps_everything;
mod documents_become_answers;
mod files_become_rows;
mod flow_stop_adds_up;
mod ingestion_is_exact;
mod large_answers_are_told;
mod many_flows_in_one_process;
mod many_streams_on_one_socket;
mod names_never_meet;
mod npm_client_works;
mod official_clients_work;
mod outage_is_survived;
mod poison_is_put_aside_once;
mod python_processors_take_over;
mod question_walks;
mod second_owner_stands_by;
mod sparql_agrees_with_oracle;
mod starts_without_certificates;
mod slow_readers_hold_no_permit;
mod sparql_is_bounded;
mod stops_when_told;
mod the_library_has_bounds;
mod vectors_are_kept_in_files;
