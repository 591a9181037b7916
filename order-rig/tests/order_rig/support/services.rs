use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
};

use saga_servers::shared::{Database, Vhost};
use serde_json::Value;

use super::{OutsideProcess, PRODUCTS, Ran, Shop, blocking};

/// So soon a dead process is noticed, and a command without an answer sent again.
const TIMES: [&str; 4] = ["--lease", "2s", "--answer-within", "2s"];

/// The three services with a database each, a broker between them, and the services outside.
#[derive(Debug)]
pub(crate) struct Services {
    /// The orders' database, and the folder that all are started in.
    pub(crate) shop: Shop,
    pub(crate) payments: String,
    pub(crate) shipping: String,
    pub(crate) broker: Broker,
    pub(crate) outside: OutsideProcess,
    _databases: Vec<Database>,
}

/// The broker between the services. It is there as long as this value.
#[derive(Debug)]
pub(crate) enum Broker {
    RabbitMq(Vhost),
    #[cfg(feature = "kafka")]
    Kafka(saga_servers::TansuServer),
    #[cfg(feature = "sqs")]
    Sqs(saga_servers::MotoServer),
}

/// A process of a service; it ends with this value.
#[derive(Debug)]
pub(crate) struct Replica {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Services {
    pub(crate) fn on_postgres() -> Self {
        let database = |name| blocking(saga_servers::shared::database(name)).expect("a database");
        let databases = vec![database("payments"), database("shipping")];
        let [payments, shipping] = [0, 1].map(|n: usize| databases[n].url().to_owned());
        Self::of(Shop::on_postgres(), payments, shipping, databases, Broker::rabbitmq())
    }

    #[cfg(feature = "kafka")]
    pub(crate) fn on_kafka() -> Self {
        Self::on_files(Broker::Kafka(blocking(saga_servers::TansuServer::start_durable()).expect("tansu starts")))
    }

    #[cfg(feature = "sqs")]
    pub(crate) fn on_sqs() -> Self {
        Self::on_files(Broker::Sqs(blocking(saga_servers::MotoServer::start()).expect("moto starts")))
    }

    pub(crate) fn on_sqlite() -> Self {
        Self::on_files(Broker::rabbitmq())
    }

    /// A database file for each service.
    fn on_files(broker: Broker) -> Self {
        Self::of(Shop::new(), "sqlite:payments.db".to_owned(), "sqlite:shipping.db".to_owned(), Vec::new(), broker)
    }

    fn of(shop: Shop, payments: String, shipping: String, databases: Vec<Database>, broker: Broker) -> Self {
        let outside = OutsideProcess::start(&shop, &[]);
        Self { shop, payments, shipping, broker, outside, _databases: databases }
    }

    /// The URL of a service's store.
    pub(crate) fn store(&self, service: &str) -> &str {
        match service {
            "payments" => &self.payments,
            "shipping" => &self.shipping,
            _ => self.shop.url().unwrap_or("sqlite:order-rig.db"),
        }
    }

    pub(crate) fn command(&self, service: &str, more: &[&str]) -> Command {
        let (store, broker, outside) = (self.store(service), self.broker.url(), &self.outside.url);
        let own = ["service", service, "--store", store, "--transport", &broker, "--outside", outside];
        let mut command = self.shop.command(&[&own[..], &TIMES, more].concat());
        command.envs(self.broker.environment());
        command
    }

    /// Starts a replica of a service, and waits until it is ready.
    pub(crate) fn start(&self, service: &str) -> Replica {
        let mut replica = self.begin(service);
        replica.wait_until_ready();
        replica
    }

    /// Starts a replica of a service, which is ready some time later.
    pub(crate) fn begin(&self, service: &str) -> Replica {
        Replica::spawn(self.command(service, &[]).stderr(Stdio::inherit()))
    }

    /// The service of the orders, which runs these.
    pub(crate) fn drive(&self, orders: &str) -> Command {
        self.command("orders", &["--orders", orders, "--products", PRODUCTS, "--json"])
    }

    /// A file with so many of the real orders, taken from all over them.
    pub(crate) fn some_orders(&self, count: usize) -> String {
        self.shop.some_orders(count)
    }

    /// The books agree and every service is at rest; gives the numbers.
    #[track_caller]
    pub(crate) fn verify(&self) -> Value {
        let ran = self.shop.run(&self.verification("180s"));
        assert_eq!(ran.code, 0, "{ran}");
        ran.json()
    }

    /// The arguments of an audit of all services.
    pub(crate) fn verification<'a>(&'a self, within: &'a str) -> Vec<&'a str> {
        let stores = ["orders", "payments", "shipping"].map(|service| ["--store", self.store(service)]);
        [&["verify", "--json", "--within", within][..], &stores.concat()].concat()
    }

    /// Asks something about the store of a service.
    pub(crate) fn ask(&self, service: &str, args: &[&str]) -> Ran {
        self.shop.run(&[args, &["--store", self.store(service)]].concat())
    }
}

impl Broker {
    fn rabbitmq() -> Self {
        Self::RabbitMq(blocking(saga_servers::shared::vhost("order_services")).expect("a virtual host"))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::RabbitMq(vhost) => vhost.url().to_owned(),
            // What a dead process had is given to others soon.
            #[cfg(feature = "kafka")]
            Self::Kafka(tansu) => format!("kafka://{}?partitions=3&session_timeout=6", tansu.brokers()),
            #[cfg(feature = "sqs")]
            Self::Sqs(_) => "sqs:orders?visibility=3".to_owned(),
        }
    }

    /// What a process finds in its environment.
    fn environment(&self) -> Vec<(&'static str, String)> {
        match self {
            #[cfg(feature = "sqs")]
            Self::Sqs(moto) => moto.environment(),
            _ => Vec::new(),
        }
    }

    /// The broker of Kafka's protocol, to be killed.
    #[cfg(feature = "kafka")]
    #[track_caller]
    pub(crate) fn kafka(&mut self) -> &mut saga_servers::TansuServer {
        match self {
            Self::Kafka(tansu) => tansu,
            _ => panic!("the broker is another one"),
        }
    }

    /// The virtual host, for what only RabbitMQ can be asked.
    #[track_caller]
    pub(crate) fn vhost(&self) -> &Vhost {
        match self {
            Self::RabbitMq(vhost) => vhost,
            #[cfg(any(feature = "kafka", feature = "sqs"))]
            _ => panic!("the broker is another one"),
        }
    }
}

impl Replica {
    /// Starts what this command says, with a pipe for its standard output.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, out }
    }

    /// Waits until it says that it is ready.
    pub(crate) fn wait_until_ready(&mut self) {
        let is_ready = |line: std::io::Result<String>| line.expect("text").ends_with(" is ready");
        assert!(self.out.by_ref().lines().any(is_ready), "it ended before it was ready");
    }

    /// Its standard error, for the one who asks first.
    pub(crate) fn take_stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("a pipe")
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        assert!(self.child.try_wait().expect("a child").is_none(), "it ended by itself");
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end, and gives its exit code.
    pub(crate) fn end(self, signal: &str) -> i32 {
        self.end_and_say(signal).0
    }

    /// Asks it to end, and gives its exit code and what it had still to say.
    pub(crate) fn end_and_say(mut self, signal: &str) -> (i32, String) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "it ended by itself");
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code().unwrap_or(-1), rest)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
