//! Black-box tests: the built binaries, a real RabbitMQ node, a scripted model server that speaks the real
//! protocol, and the official clients. One file per promise to the user.

mod bad_files;
mod traces;
mod world;

mod a_killed_process_is_survived;
mod answers_hide_topology;
mod bad_documents_are_told;
mod builtin_reads_any_dataset;
mod bundles_carry_workspaces;
mod cores_move_between_systems;
mod documents_become_answers;
mod files_become_rows;
mod flow_stop_adds_up;
mod ingestion_is_exact;
mod many_flows_in_one_process;
mod many_streams_on_one_socket;
mod names_never_meet;
mod npm_client_works;
mod official_clients_work;
mod outage_is_survived;
mod python_processors_take_over;
mod question_walks;
mod second_owner_stands_by;
mod sparql_agrees_with_oracle;
mod stops_when_told;
mod vectors_are_kept_in_files;
