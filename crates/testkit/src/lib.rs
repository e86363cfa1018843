//! For tests only: private RabbitMQ node and scripted model server.

pub mod model;
pub mod process;
pub mod rabbitmq;
pub mod socket;
