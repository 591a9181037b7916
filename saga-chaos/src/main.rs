//! Runs orders while things go wrong: `cargo xtask chaos`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use order_rig::outside::LateCalls;
use saga_chaos::{Options, Programs, Transport, Where, print_time, run};

/// Runs orders through three services while replicas, servers and connections are broken, and judges the result.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask chaos", bin_name = "cargo xtask chaos", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Own>,
    /// For how many minutes there are faults
    #[arg(long, value_name = "N", default_value_t = 2)]
    minutes: u64,
    /// The same in seconds
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// The plan follows from it [default: another one each time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// What carries the messages; faults that only RabbitMQ can have are left out elsewhere
    #[arg(long, value_enum, default_value_t = Carrier::Rabbitmq)]
    transport: Carrier,
    /// Archives and purges what ended a minute or longer ago, and starts orders again that have become tombstones; not on SQS, which
    /// may deliver a message again after days
    #[arg(long)]
    retention: bool,
    /// The services outside carry out calls that land after their undo
    #[arg(long)]
    no_bar: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// A transport, as it is named on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Carrier {
    /// RabbitMQ
    Rabbitmq,
    /// Kafka: tansu, a broker of its protocol
    Kafka,
    /// Amazon SQS and SNS: moto, a mock
    Sqs,
}

impl From<Carrier> for Transport {
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Rabbitmq => Self::RabbitMq,
            Carrier::Kafka => Self::Kafka,
            Carrier::Sqs => Self::Sqs,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Own {
    /// Say what time it is, in microseconds since 1970
    #[command(hide = true)]
    Clock,
}

const HELD_PER_MILLE: u32 = 30;
const SECONDS_MIN: u64 = 60;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(Own::Clock) = arguments.command {
        print_time();
        return ExitCode::SUCCESS;
    }
    match chaos(&arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn chaos(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.retention && matches!(arguments.transport, Carrier::Sqs) {
        anyhow::bail!(
            "--retention does not go with --transport sqs: SQS may deliver a message again after 14 days, and message ids are kept for \
             longer than that, so a run of minutes could purge nothing; take --transport rabbitmq or kafka"
        );
    }
    let seed = arguments.seed.unwrap_or_else(random_seed);
    let seconds = arguments.seconds.unwrap_or(arguments.minutes * 60).max(SECONDS_MIN);
    eprintln!("the seed is {seed}");
    let options = Options {
        seed,
        length: Duration::from_secs(seconds),
        servers: Where::Own,
        transport: arguments.transport.into(),
        purges: arguments.retention,
        late_calls: if arguments.no_bar { LateCalls::CarriedOut } else { LateCalls::Refused },
        held_per_mille: HELD_PER_MILLE,
        held_past_undo: 3,
        is_shown: true,
        programs: Programs::beside_this_one()?,
    };
    let report = tokio::select! {
        report = run(options) => report?,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{report}");
    }
    Ok(report.is_green())
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0) >> 48
}
