//! Tells the story of six bookings on a terminal.

#[cfg(feature = "broker")]
use booking::broker::Broker;
use booking::deployment::Deployment;
use booking::story::tell;
use clap::Parser;

/// Books seats through three services: one booking goes well, the payment of one fails, the orchestrator of one is killed and
/// started again, one wants a seat that is taken, and two have the same card.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// A broker between the services: `amqp://..` if the program has the feature `rabbitmq`, `sqs:PREFIX` if it has the feature `sqs`.
    /// The orchestrator is a process of its own
    #[arg(long)]
    broker: Option<String>,
    #[cfg(feature = "broker")]
    #[command(subcommand)]
    command: Option<Command>,
}

#[cfg(feature = "broker")]
#[derive(clap::Subcommand)]
enum Command {
    /// The orchestrator. It reads requests as lines of JSON, and prints how they end
    #[command(name = booking::orchestrator::PROGRAM)]
    Orchestrator {
        /// The file of its sagas
        #[arg(long)]
        file: std::path::PathBuf,
        /// `amqp://..` or `sqs:PREFIX`
        #[arg(long)]
        broker: String,
        /// The address of the seat map, http://..
        #[arg(long)]
        seats: String,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    #[cfg(feature = "broker")]
    if let Some(Command::Orchestrator { file, broker, seats }) = &cli.command {
        return booking::orchestrator::run(file, broker, seats).await;
    }
    let mut deployment = deploy(cli.broker.as_deref()).await?;
    let told = tell(&mut deployment).await;
    deployment.close().await;
    told
}

async fn deploy(broker: Option<&str>) -> anyhow::Result<Deployment> {
    match broker {
        #[cfg(feature = "broker")]
        Some(broker) => Deployment::on_broker(std::env::current_exe()?, Broker::connect(broker).await?).await,
        #[cfg(not(feature = "broker"))]
        Some(_) => anyhow::bail!(
            "--broker: this program was built without a broker; build it for one with `cargo run -p booking --features rabbitmq -- ..` or `--features sqs`"
        ),
        None => Deployment::in_memory(booking::saga::book_seat()?).await,
    }
}
