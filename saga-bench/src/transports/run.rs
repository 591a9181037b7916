//! The contenders in rounds, each in a place of its own, and their results side by side.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;

use super::brokers::{Brokers, Kind};
use super::{bare_kafka, receiving};
use crate::figures::{Figures, Target, percentile, print_table};
use crate::line::Line;
use crate::messages::receipt::{self, Committer};
use crate::messages::{CALL, relay};
use crate::postgres::server;
use saga_postgres::PostgresStore;

const BENCH: &str = "transports";
/// What the relay over Kafka and receiving from it are to reach, as a share of the bare client.
const RELAY_TO_BARE: f64 = 0.65;
const RECEIVING_TO_BARE: f64 = 0.6;
/// What a mock of SQS is spared: it has this share of the messages.
const SQS_SHARE: u32 = 10;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Messages that are relayed and received a round; a tenth of them over the mock of SQS.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    messages: u32,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    bytes: u32,
    /// Messages a round that are timed one at a time.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(20..))]
    receipts: u32,
    /// Rounds, in each of which every contender runs once.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    require: bool,
}

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run_all(options))
}

async fn run_all(options: &Options) -> Result<bool> {
    let postgres = server::start().await?;
    let brokers = Brokers::start().await?;
    if !options.json {
        println!(
            "PostgreSQL with durable commits, RabbitMQ with a quorum queue, tansu in memory, moto, all on this machine;\n\
             bodies of {} bytes; {} messages a round, {} over SQS; {} rounds, interleaved; the median, [the least to the most]\n",
            options.bytes,
            options.messages,
            options.messages / SQS_SHARE,
            options.rounds
        );
    }
    let mut bare = (Figures::of_messages("bare rdkafka"), Figures::of_messages("bare rdkafka"));
    let mut all: Vec<Measured> = Kind::ALL.map(Measured::of).into();
    for round in 0..options.rounds {
        let (messages, bytes) = (options.messages, options.bytes as usize);
        let name = |work: &str| format!("bare-{work}-{round}");
        bare.0.values.push(bare_kafka::publish(&brokers.kafka(), &name("relay"), messages, bytes).await?);
        bare.1.values.push(bare_kafka::receive(&brokers.kafka(), &name("receive"), messages, bytes).await?);
        for measured in &mut all {
            measured.measure(&postgres, &brokers, options, round).await?;
        }
    }
    let kafka = all.iter().find(|measured| measured.kind == Kind::Kafka);
    let ratio =
        |own: fn(&Measured) -> &Figures, bare: &Figures| kafka.map_or(f64::NAN, |kafka| own(kafka).ratio_to(bare));
    let targets = [
        Target::at_least("relay over Kafka / bare rdkafka", RELAY_TO_BARE, ratio(|kafka| &kafka.relay, &bare.0)),
        Target::at_least("receiving / bare rdkafka", RECEIVING_TO_BARE, ratio(|kafka| &kafka.receiving, &bare.1)),
    ];
    print(&all, &bare, options.json);
    for target in &targets {
        target.print(BENCH, options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

/// What one transport reached.
struct Measured {
    kind: Kind,
    relay: Figures,
    receiving: Figures,
    half: Figures,
    most: Figures,
}

impl Measured {
    fn of(kind: Kind) -> Self {
        let milliseconds = |part: &str| Figures::of_milliseconds(format!("{}, {part}", kind.name()));
        let (relay, receiving) = (Figures::of_messages(kind.name()), Figures::of_messages(kind.name()));
        Self { kind, relay, receiving, half: milliseconds("p50"), most: milliseconds("p99") }
    }

    async fn measure(
        &mut self,
        postgres: &saga_servers::PostgresServer,
        brokers: &Brokers,
        options: &Options,
        round: u32,
    ) -> Result<()> {
        let bytes = options.bytes as usize;
        let messages = if self.kind == Kind::Sqs { options.messages / SQS_SHARE } else { options.messages };
        let name = |work: &str| format!("{work}_{}_{round}", self.kind as u8);
        let place = async |work: &str| brokers.place(self.kind, &name(work)).await;
        let store = async |work: &str| {
            let url = postgres.create_database(&name(work)).await?;
            anyhow::Ok([PostgresStore::connect(&url).await?, PostgresStore::connect(&url).await?])
        };
        let sent_to = place("relay").await?;
        let transport = sent_to.connect().await?;
        // A queue takes what is sent, as it does in a company.
        drop(transport.subscribe(crate::messages::subscription(1)).await?);
        let draining = sent_to.sends_when_accepted().then(|| tokio::spawn(receiving::drain(Arc::clone(&transport))));
        let [relaying, _] = store("relay").await?;
        self.relay.values.push(relay::run(relaying, transport, messages, 1, bytes).await?);
        if let Some(draining) = draining {
            draining.abort();
        }
        self.receiving.values.push(receiving::run(&place("receive").await?, messages, bytes).await?);
        let timed = place("receipt").await?.connect().await?;
        let stores = store("receipt").await?;
        let took = receipt::run(stores, timed, Committer::SameProcess, options.receipts, bytes).await?;
        self.half.values.push(percentile(&took, 0.5));
        self.most.values.push(percentile(&took, 0.99));
        Ok(())
    }
}

fn print(all: &[Measured], (bare_relay, bare_receiving): &(Figures, Figures), is_json: bool) {
    if is_json {
        for measured in all {
            let line = Line::of(BENCH, "messages", CALL, measured.kind.name());
            let line = line.number("relayed_per_s", measured.relay.median(), 0);
            let line = line.number("received_per_s", measured.receiving.median(), 0);
            let line = line.number("receipt_p50_ms", measured.half.median(), 3);
            println!("{}", line.number("receipt_p99_ms", measured.most.median(), 3).ratios([]));
        }
        return;
    }
    println!("relayed from the outbox, until confirmed:");
    print_table(&all.iter().map(|measured| &measured.relay).chain([bare_relay]).collect::<Vec<_>>());
    println!("\nreceived and accepted, of what lay there:");
    print_table(&all.iter().map(|measured| &measured.receiving).chain([bare_receiving]).collect::<Vec<_>>());
    println!("\none message at a time, from commit to receipt:");
    print_table(&all.iter().flat_map(|measured| [&measured.half, &measured.most]).collect::<Vec<_>>());
    println!();
}
