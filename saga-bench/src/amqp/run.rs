//! The contenders in rounds, each in a new database and a new virtual host, and their results.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;

use super::floor;
use super::servers::{CONFIRM_WINDOW, Place, Servers};
use crate::figures::{Figures, Target, percentile, print_table};
use crate::line::Line;
use crate::messages::receipt::{self, Committer};
use crate::messages::{relay, without_outbox};

const BENCH: &str = "amqp";
/// What the relay is to reach, as a share of bare lapin.
const RELAY_TO_BARE: f64 = 0.7;
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
    /// How many rounds to run. Every contender runs once in each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Also times messages whose committer tells the other processes of them.
    #[arg(long)]
    notify: bool,
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
    let mut receipts = Receipts::new(options);
    for round in 0..options.rounds {
        rates.measure(&servers, options, round).await?;
        receipts.measure(&servers, options, round).await?;
    }
    let relayed = Target::at_least("relay / bare lapin", RELAY_TO_BARE, rates.single.ratio_to(&rates.bare));
    let received = Target::at_most("one process, p50 ms", RECEIPT_MILLIS_MAX, receipts.same_process.half.median());
    rates.print(options.json);
    relayed.print(BENCH, options.json);
    if !options.json {
        println!("\n{} messages a round, one at a time, from commit to receipt:", options.receipts);
    }
    receipts.print(options.json);
    received.print(BENCH, options.json);
    Ok(!options.require || (relayed.is_reached() && received.is_reached()))
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
        self.transport
            .values
            .push(without_outbox(&place("transport").await?.transport().await?, messages, bytes).await?);
        self.single.values.push(relayed(&place("single").await?, messages, 1, bytes).await?);
        self.ordered.values.push(relayed(&place("ordered").await?, messages, PER_KEY, bytes).await?);
        Ok(())
    }

    fn print(&self, is_json: bool) {
        let all = [&self.bare, &self.transport, &self.single, &self.ordered];
        if !is_json {
            return print_table(&all);
        }
        for (rate, subject) in all.into_iter().zip(["lapin", "transport", "relay", "relay, ordered"]) {
            let window = u32::try_from(CONFIRM_WINDOW).unwrap_or(u32::MAX);
            let line = Line::of(BENCH, "relay", window, subject).number("messages_per_s", rate.median(), 0);
            let ratio = (subject != "lapin").then(|| ("lapin".to_owned(), rate.ratio_to(&self.bare)));
            println!("{}", line.ratios(ratio));
        }
    }
}

/// Milliseconds of one message.
struct Receipts {
    bare: Spread,
    same_process: Spread,
    other: Spread,
    told: Option<Spread>,
}

async fn relayed(place: &Place, messages: u32, per_key: u32, bytes: usize) -> Result<f64> {
    relay::run(place.store().await?, Arc::new(place.transport().await?), messages, per_key, bytes).await
}

async fn received(place: &Place, committer: Committer, messages: u32, bytes: usize) -> Result<Vec<f64>> {
    let stores = [place.store().await?, place.store().await?];
    receipt::run(stores, Arc::new(place.transport().await?), committer, messages, bytes).await
}

/// The median, and what one in a hundred takes longer than.
struct Spread {
    half: Figures,
    most: Figures,
}

impl Receipts {
    fn new(options: &Options) -> Self {
        Self {
            told: options.notify.then(|| Spread::of("committed by another, told by NOTIFY")),
            bare: Spread::of("bare lapin, from publishing"),
            same_process: Spread::of("committed by the process that relays"),
            other: Spread::of("committed by another, found by a poll"),
        }
    }

    async fn measure(&mut self, servers: &Servers, options: &Options, round: u32) -> Result<()> {
        let (messages, bytes) = (options.receipts, options.bytes as usize);
        let place = async |name: &str| servers.place(&format!("{name}_{round}")).await;
        self.bare.add(&floor::receipts(&place("idle").await?, messages, bytes).await?);
        let same = received(&place("same").await?, Committer::SameProcess, messages, bytes).await?;
        self.same_process.add(&same);
        self.other.add(&received(&place("other").await?, Committer::Other, messages, bytes).await?);
        if let Some(told) = &mut self.told {
            told.add(&received(&place("told").await?, Committer::OtherTells, messages, bytes).await?);
        }
        Ok(())
    }

    fn print(&self, is_json: bool) {
        let all = [&self.bare, &self.same_process, &self.other].into_iter().chain(&self.told);
        if !is_json {
            return print_table(&all.flat_map(|spread| [&spread.half, &spread.most]).collect::<Vec<_>>());
        }
        for (spread, subject) in all.zip(["lapin", "one process", "another, by a poll", "another, by NOTIFY"]) {
            let line = Line::of(BENCH, "receipt", 1, subject).ratios([]);
            println!("{}", line.number("p50_ms", spread.half.median(), 3).number("p99_ms", spread.most.median(), 3));
        }
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
