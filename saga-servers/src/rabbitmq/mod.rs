//! RabbitMQ, alone or as a cluster of three.

mod deleted_queues;
pub(super) mod management;
pub(super) mod rabbitmq;
pub(super) mod rabbitmq_cluster;
pub(super) mod rabbitmq_node;
