//! The contenders, round after round, each in a new database and a new virtual host, and what came out.

use anyhow::Result;
use clap::Args;

use super::receipt::{self, Committer};
use super::servers::{CONFIRM_WINDOW, Servers};
use super::{floor, relay};
use crate::figures::{Figures, Target, percentile, print_table};

/// What the relay is to reach, as a share of bare lapin.
const RELAY_TO_BARE: f64 = 0.5;
/// How long one message may take within one process, in milliseconds, by the median.
const RECEIPT_MILLIS_MAX: f64 = 10.0;
/// How many messages of one ordering key lie in the outbox, where keys have more than one.
const PER_KEY: u32 = 20;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Messages that are relayed a round.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    messages: u32,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    bytes: u32,
    /// Messages a round that are timed one at a time.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(100..))]
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
    let servers = Servers::start().await?;
    if !options.json {
        println!(
            "PostgreSQL with durable commits, RabbitMQ with a quorum queue, all on this machine; bodies of {} bytes, \
             {CONFIRM_WINDOW} unconfirmed at a time",
            options.bytes
        );
        println!(
            "{} messages a round, {} rounds, interleaved; the median, [the least to the most]\n",
            options.messages, options.rounds
        );
    }
    let mut rates = Rates::new();
    let mut receipts = Receipts::new();
    for round in 0..options.rounds {
        rates.measure(&servers, options, round).await?;
        receipts.measure(&servers, options, round).await?;
    }
    rates.print(options.json);
    let ratio = rates.single.ratio_to(&rates.bare);
    let relayed = Target { name: "relay to bare lapin", wanted: RELAY_TO_BARE, measured: ratio };
    let median = receipts.same_process.half.median();
    let is_quick = median < RECEIPT_MILLIS_MAX;
    if options.json {
        println!("{}", relayed.json());
    } else {
        println!("{}\n", relayed.row());
        println!("{} messages a round, one at a time, from commit to receipt:", options.receipts);
    }
    receipts.print(options.json);
    if !options.json {
        let verdict = if is_quick { "reached" } else { "NOT REACHED" };
        println!("{:<44} {median:>12.2}   target < {RECEIPT_MILLIS_MAX}: {verdict}", "one process, p50");
    }
    Ok(!options.require || (relayed.is_reached() && is_quick))
}

/// Messages a second.
struct Rates {
    bare: Figures,
    transport: Figures,
    single: Figures,
    ordered: Figures,
}

impl Rates {
    fn new() -> Self {
        Self {
            bare: Figures::of_messages("bare lapin, no outbox"),
            transport: Figures::of_messages("the transport, no outbox"),
            single: Figures::of_messages("relay, each message its own ordering key"),
            ordered: Figures::of_messages(format!("relay, {PER_KEY} messages an ordering key")),
        }
    }

    async fn measure(&mut self, servers: &Servers, options: &Options, round: u32) -> Result<()> {
        let (messages, bytes) = (options.messages, options.bytes as usize);
        let place = async |name: &str| servers.place(&format!("{name}_{round}")).await;
        self.bare.values.push(floor::publish(&place("bare").await?, messages, bytes).await?);
        self.transport.values.push(floor::transport(&place("transport").await?, messages, bytes).await?);
        self.single.values.push(relay::run(&place("single").await?, messages, 1, bytes).await?);
        self.ordered.values.push(relay::run(&place("ordered").await?, messages, PER_KEY, bytes).await?);
        Ok(())
    }

    fn print(&self, is_json: bool) {
        print_table(&[&self.bare, &self.transport, &self.single, &self.ordered], is_json);
    }
}

/// Milliseconds of one message.
struct Receipts {
    bare: Spread,
    same_process: Spread,
    other: Spread,
}

/// The median, and what one in a hundred takes longer than.
struct Spread {
    half: Figures,
    most: Figures,
}

impl Receipts {
    fn new() -> Self {
        Self {
            bare: Spread::of("bare lapin, from publishing"),
            same_process: Spread::of("committed by the process that relays"),
            other: Spread::of("committed by another, found by a poll"),
        }
    }

    async fn measure(&mut self, servers: &Servers, options: &Options, round: u32) -> Result<()> {
        let (messages, bytes) = (options.receipts, options.bytes as usize);
        let place = async |name: &str| servers.place(&format!("{name}_{round}")).await;
        self.bare.add(&floor::receipts(&place("idle").await?, messages, bytes).await?);
        let same = receipt::run(&place("same").await?, Committer::SameProcess, messages, bytes).await?;
        self.same_process.add(&same);
        self.other.add(&receipt::run(&place("other").await?, Committer::Other, messages, bytes).await?);
        Ok(())
    }

    fn print(&self, is_json: bool) {
        let all = [&self.bare, &self.same_process, &self.other];
        print_table(&all.map(|spread| [&spread.half, &spread.most]).concat(), is_json);
    }
}

impl Spread {
    fn of(name: &str) -> Self {
        let figures = |part: &str| Figures::of_milliseconds(format!("{name}, {part}"));
        Self { half: figures("p50"), most: figures("p99") }
    }

    fn add(&mut self, took: &[f64]) {
        self.half.values.push(percentile(took, 0.5));
        self.most.values.push(percentile(took, 0.99));
    }
}
