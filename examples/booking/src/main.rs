//! Tells the story of six bookings on a terminal.

use booking::deployment::Deployment;
use booking::story::tell;
use clap::Parser;

/// Books seats through three services: one booking goes well, the payment of one fails, the orchestrator of one is killed and
/// started again, one wants a seat that is taken, and two have the same card.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The amqp:// URL of a RabbitMQ broker, if the program has the feature `rabbitmq`: the orchestrator is a process of its own
    #[arg(long)]
    broker: Option<String>,
    #[cfg(feature = "rabbitmq")]
    #[command(subcommand)]
    command: Option<Command>,
}

#[cfg(feature = "rabbitmq")]
#[derive(clap::Subcommand)]
enum Command {
    /// The orchestrator. It reads requests as lines of JSON, and prints how they end
    #[command(name = booking::orchestrator::PROGRAM)]
    Orchestrator {
        /// The file of its sagas
        #[arg(long)]
        file: std::path::PathBuf,
        /// The amqp:// URL of the RabbitMQ broker
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
    #[cfg(feature = "rabbitmq")]
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
        #[cfg(feature = "rabbitmq")]
        Some(broker) => Deployment::on_rabbitmq(std::env::current_exe()?, broker).await,
        #[cfg(not(feature = "rabbitmq"))]
        Some(_) => anyhow::bail!("--broker: this program was built without the feature `rabbitmq`"),
        None => Deployment::in_memory(booking::saga::book_seat()?).await,
    }
}
