use std::{
    fmt::Write as _,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use rusqlite::{Connection, OpenFlags};
use saga_servers::shared::Database;
use saga_sql::SqlConn;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use super::Ran;

/// 830 real orders.
pub(crate) const ORDERS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/order-saga/data/northwind-orders.jsonl");
/// The products that they are for.
pub(crate) const PRODUCTS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/order-saga/data/northwind-products.jsonl");
/// How many real orders there are.
pub(crate) const REAL_ORDERS: u64 = 830;
/// The arguments that run the real orders.
pub(crate) const REAL: [&str; 6] = ["run", "--json", "--orders", ORDERS, "--products", PRODUCTS];

/// A folder that the program is started in, and the store that it works on.
#[derive(Debug)]
pub(crate) struct Shop {
    folder: TempDir,
    database: Option<Database>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), database: None }
    }

    /// The same with a PostgreSQL database of its own.
    pub(crate) fn on_postgres() -> Self {
        let database = blocking(saga_servers::shared::database("order_rig")).expect("a database");
        Self { database: Some(database), ..Self::new() }
    }

    /// The URL of its database, where it is not in a file.
    pub(crate) fn url(&self) -> Option<&str> {
        self.database.as_ref().map(Database::url)
    }

    /// The URL of the same database through PgBouncer in transaction mode.
    pub(crate) fn pgbouncer_url(&self) -> String {
        self.database.as_ref().expect("a database").pgbouncer_url().expect("its URL")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// A file with so many of the real orders, spread over all of them.
    pub(crate) fn some_orders(&self, count: usize) -> String {
        let all = std::fs::read_to_string(ORDERS).expect("the real orders");
        let all: Vec<&str> = all.lines().collect();
        let some: Vec<&str> = all.chunks(all.len() / count).map(|chunk| chunk[0]).take(count).collect();
        self.write("some-orders.jsonl", some.join("\n")).display().to_string()
    }

    /// The keys of the orders that stand there.
    pub(crate) fn listed(&self, status: &str) -> Vec<String> {
        let ran = self.run(&["list", "--status", status]);
        assert_eq!(ran.code, 0, "{ran}");
        ran.out.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_order-rig"));
        command.current_dir(self.folder.path()).args(args).stdin(Stdio::null());
        // Every command but `graph` takes the store; one that names a store itself means that one.
        if let Some(url) = self.url().filter(|_| !args.contains(&"--store") && !args.contains(&"graph")) {
            command.args(["--store", url]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("the program starts"))
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
        Ran::of(child.wait_with_output().expect("it ends"))
    }

    /// The audit is green; gives its numbers.
    #[track_caller]
    pub(crate) fn verify(&self) -> Value {
        let ran = self.run(&["verify", "--json"]);
        assert_eq!(ran.code, 0, "{ran}");
        ran.json()
    }

    /// The store's file, for looking only.
    pub(crate) fn shop(&self) -> Option<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Connection::open_with_flags(self.path("order-rig.db"), flags).ok()
    }

    /// How many orders have ended by the shop's tables; none while there are no tables.
    pub(crate) fn ended(&self) -> u64 {
        let count = "SELECT count(*) FROM orders WHERE status <> 'placed'";
        self.rows(count).map_or(0, |rows| rows[0])
    }

    /// What a query on the shop's tables gives, if there are such tables.
    pub(crate) fn rows<T: DeserializeOwned + Send>(&self, sql: &'static str) -> Option<Vec<T>> {
        match self.url() {
            None => blocking(async { self.shop()?.query(sql, &[]).await.ok() }),
            Some(url) => blocking(async { PgConnection::connect(url).await.ok()?.query(sql, &[]).await.ok() }),
        }
    }

    /// Changes the database behind the program's back.
    pub(crate) fn execute(&self, sql: &'static str) {
        let url = self.url().expect("a database");
        let executed =
            blocking(async { PgConnection::connect(url).await.expect("a connection").execute_batch(sql).await });
        executed.expect("the statements");
    }

    /// Everything that the shop and the services outside have written down, as text.
    pub(crate) fn everything(&self) -> String {
        let mut text = String::new();
        for table in [
            "SELECT sku, in_stock, in_stock_at_first FROM products ORDER BY sku",
            "SELECT order_id, customer, total_cents, freight_cents, status, coalesce(reason, '-') FROM orders ORDER BY order_id",
            "SELECT order_id, item, sku, quantity, status FROM reservations ORDER BY order_id, item",
        ] {
            for row in self.rows::<Value>(table).expect("the table is there") {
                let name = table.split_whitespace().skip_while(|word| *word != "FROM").nth(1).unwrap_or_default();
                writeln!(text, "{name} {row}").expect("text takes everything");
            }
        }
        let book = Connection::open_with_flags(self.book(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the book");
        for table in ["calls", "answers", "charges", "refunds", "shipments", "cancellations"] {
            let mut rows = book.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).expect("the table is there");
            let columns = rows.column_count();
            let mut rows = rows.query([]).expect("rows");
            while let Some(row) = rows.next().expect("a row") {
                let values: Vec<_> = (0..columns).map(|n| row.get::<_, rusqlite::types::Value>(n)).collect();
                writeln!(text, "{table} {values:?}").expect("text takes everything");
            }
        }
        text
    }

    /// The book of the services outside.
    fn book(&self) -> PathBuf {
        let files = std::fs::read_dir(self.folder.path()).expect("the folder").filter_map(Result::ok);
        let is_book = |path: &PathBuf| path.display().to_string().ends_with(".outside.db");
        files.map(|file| file.path()).find(is_book).expect("a book")
    }
}

/// Runs a task to its end: the tests themselves are plain functions.
pub(crate) fn blocking<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(task)
}
