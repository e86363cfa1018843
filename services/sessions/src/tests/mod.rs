//! Agents and sessions over the bus, with an agent that the test plays. The numbers are those of the contract's acceptance table.

mod agents;
mod conversations;
mod sessions;
mod turns;
mod workspace_agents;
mod world;
