//! A Kafka cluster to try things out with: librdkafka's mock, in memory. It prints its URL, and runs until it is ended.
//!
//! `cargo run -p saga-kafka --example mock_cluster`

use std::error::Error;

use saga_kafka::MockCluster;

fn main() -> Result<(), Box<dyn Error>> {
    let cluster = MockCluster::start()?;
    println!("kafka://{}?topics=on-demand", cluster.brokers());
    loop {
        std::thread::park();
    }
}
