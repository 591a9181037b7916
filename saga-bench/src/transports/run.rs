//! The contenders in rounds, each in a place of its own, and their results side by side.

use anyhow::Result;
use clap::Args;
use saga_postgres::PostgresStore;

use super::brokers::{Brokers, Kind};
use super::measured::{Bare, Load, Measured};
use super::requests::{self, Requests};
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;
use crate::messages::CALL;
use crate::postgres::server;

const BENCH: &str = "transports";
/// What the relay over Kafka and receiving from it are to reach, as a share of the bare client.
const RELAY_TO_BARE: f64 = 0.65;
const RECEIVING_TO_BARE: f64 = 0.6;
/// How many requests of each kind a message may take on SQS.
const REQUESTS_MAX: f64 = 0.12;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Messages that are relayed and received a round; a quarter of them where tansu stores them on a mock of S3.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(4_000..))]
    messages: u32,
    /// Bytes of a message's content.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    bytes: u32,
    /// Messages a round that are timed one at a time.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(20..))]
    receipts: u32,
    /// How many rounds to run. Every contender runs once in each.
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
            "PostgreSQL with durable commits, RabbitMQ with a quorum queue, tansu in memory and on a mock of S3, all on this \
             machine;\nbodies of {} bytes; {} messages a round, {} on the mock of S3; {} rounds, interleaved; the median, \
             [the least to the most]\n",
            options.bytes,
            options.messages,
            options.messages / Kind::KafkaOnS3.share(),
            options.rounds
        );
    }
    let mut all: Vec<Measured> = Kind::ALL.map(|kind| Measured::of(kind, &brokers)).into();
    let load = Load { messages: options.messages, bytes: options.bytes as usize, receipts: options.receipts };
    for round in 0..options.rounds {
        for measured in &mut all {
            eprintln!("round {} of {}, {}", round + 1, options.rounds, measured.kind.name());
            measured.measure(&postgres, &brokers, &load, round).await?;
        }
    }
    eprintln!("the requests of SQS");
    let url = postgres.create_database("requests").await?;
    let requests = requests::count(PostgresStore::connect(&url).await?, load.bytes).await?;
    let targets = targets(&all, &requests);
    if options.json {
        print_lines(&all, &requests);
    } else {
        print(&all, &requests);
    }
    for target in &targets {
        target.print(BENCH, options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

fn targets(all: &[Measured], requests: &Requests) -> Vec<Target> {
    let mut targets = Vec::new();
    for measured in all {
        let Some([relay, _, receiving]) = measured.to_bare() else { continue };
        let name = |part: &str| format!("{}: {part} / bare", measured.kind.name());
        targets.push(Target::at_least(name("relay"), RELAY_TO_BARE, relay));
        targets.push(Target::at_least(name("receiving"), RECEIVING_TO_BARE, receiving));
    }
    let of_sqs = [("send", requests.sending), ("receive", requests.receiving), ("delete", requests.deleting)];
    targets.extend(
        of_sqs.map(|(name, count)| Target::at_most(format!("SQS: {name} requests a message"), REQUESTS_MAX, count)),
    );
    targets
}

fn print_lines(all: &[Measured], requests: &Requests) {
    for measured in all {
        println!("{}", line(measured));
        if let Some(bare) = &measured.bare {
            println!("{}", bare_line(measured.kind, bare));
        }
    }
    let line = Line::of(BENCH, "requests", CALL, "SQS").number("sends_per_message", requests.sending, 3);
    let line = line.number("receives_per_message", requests.receiving, 3);
    println!("{}", line.number("deletes_per_message", requests.deleting, 3).ratios([]));
}

fn line(measured: &Measured) -> Line {
    let Measured { kind, relay, sending, receiving, half, most, .. } = measured;
    let sent_per_s = (!sending.values.is_empty()).then(|| sending.median());
    let line = Line::of(BENCH, "messages", CALL, kind.name()).number("relayed_per_s", relay.median(), 0);
    let line = line.number_if_any("sent_per_s", sent_per_s, 0).number("received_per_s", receiving.median(), 0);
    let line = line.number("receipt_p50_ms", half.median(), 3).number("receipt_p99_ms", most.median(), 3);
    let ratios = measured
        .to_bare()
        .map(|[relay, sending, receiving]| [("relay", relay), ("sending", sending), ("receiving", receiving)]);
    line.ratios(ratios.into_iter().flatten().map(|(name, ratio)| (format!("{name} to rdkafka"), ratio)))
}

/// What the bare client reached on the same broker.
fn bare_line(kind: Kind, bare: &Bare) -> Line {
    let line = Line::of(BENCH, "messages", CALL, &format!("rdkafka, {}", kind.name()));
    let line = line.number("sent_per_s", bare.sending.median(), 0).number("received_per_s", bare.receiving.median(), 0);
    line.number("receipt_p50_ms", bare.half.median(), 3).ratios([])
}

fn print(all: &[Measured], requests: &Requests) {
    println!(
        "| transport | relayed, messages/s | received, messages/s | commit to receipt, p50 / p99 ms |\n|---|---|---|---|"
    );
    for Measured { kind, relay, receiving, half, most, .. } in all {
        let (relay, receiving, half, most) = (relay.median(), receiving.median(), half.median(), most.median());
        println!("| {} | {relay:.0} | {receiving:.0} | {half:.1} / {most:.1} |", kind.name());
    }
    println!(
        "| SQS (moto) | {:.2} requests a message | {:.2} to receive and {:.2} to delete | |",
        requests.sending, requests.receiving, requests.deleting
    );
    let sending = |measured: &&Measured| !measured.sending.values.is_empty();
    let bare: Vec<&Bare> = all.iter().filter_map(|measured| measured.bare.as_ref()).collect();
    let tables: [(&str, Vec<&Figures>); 8] = [
        ("relayed from the outbox, until confirmed", all.iter().map(|measured| &measured.relay).collect()),
        ("sent by the transport, no outbox", all.iter().filter(sending).map(|measured| &measured.sending).collect()),
        ("sent by bare rdkafka", bare.iter().map(|bare| &bare.sending).collect()),
        ("received and accepted, of what lay there", all.iter().map(|measured| &measured.receiving).collect()),
        ("received by bare rdkafka", bare.iter().map(|bare| &bare.receiving).collect()),
        ("one message at a time, from commit to receipt, p50", all.iter().map(|measured| &measured.half).collect()),
        ("the same, p99", all.iter().map(|measured| &measured.most).collect()),
        ("one record at a time, by bare rdkafka, p50", bare.iter().map(|bare| &bare.half).collect()),
    ];
    for (title, figures) in tables {
        println!("\n{title}:");
        print_table(&figures);
    }
    println!();
    for measured in all {
        if let Some([_, sending, _]) = measured.to_bare() {
            println!("{}: sent without an outbox / bare {sending:.2}", measured.kind.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(value: f64) -> Figures {
        let mut figures = Figures::of_messages("");
        figures.values.push(value);
        figures
    }

    #[test]
    fn sending_and_the_bare_client_are_in_the_lines_of_json() {
        let bare = Bare { sending: figures(400.0), receiving: figures(800.0), half: figures(5.0) };
        let measured = Measured {
            kind: Kind::Kafka,
            relay: figures(100.0),
            sending: figures(200.0),
            receiving: figures(600.0),
            half: figures(3.0),
            most: figures(4.0),
            bare: Some(bare),
        };
        let lines = [line(&measured), bare_line(measured.kind, measured.bare.as_ref().unwrap())];
        let [own, bare] = lines.map(|line| line.to_string());
        for part in [r#""relayed_per_s":100.0,"sent_per_s":200.0"#, r#""sending to rdkafka":0.5"#] {
            assert!(own.contains(part), "{own}");
        }
        let part = r#""subject":"rdkafka, Kafka (tansu in memory)","sent_per_s":400.0,"received_per_s":800.0"#;
        assert!(bare.contains(part), "{bare}");
        let unsent = Measured { sending: Figures::of_messages(""), bare: None, ..measured };
        assert!(!line(&unsent).to_string().contains("sent_per_s"));
    }
}
