use std::{
    fmt::Write as _,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

use super::Ran;

/// 830 real orders.
pub(crate) const ORDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/northwind-orders.jsonl");
/// The products that they are for.
pub(crate) const PRODUCTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/northwind-products.jsonl");
/// How many real orders there are.
pub(crate) const REAL_ORDERS: u64 = 830;
/// The arguments that run the real orders.
pub(crate) const REAL: [&str; 6] = ["run", "--json", "--orders", ORDERS, "--products", PRODUCTS];

/// A folder that the program is started in.
#[derive(Debug)]
pub(crate) struct Shop {
    folder: TempDir,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_order-saga"));
        command.current_dir(self.folder.path()).args(args).stdin(Stdio::null());
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
        Connection::open_with_flags(self.path("order-saga.db"), flags).ok()
    }

    /// How many orders have ended by the shop's tables; none while there are no tables.
    pub(crate) fn ended(&self) -> u64 {
        let count = "SELECT count(*) FROM orders WHERE status <> 'placed'";
        let counted = self.shop().and_then(|shop| shop.query_row(count, [], |row| row.get::<_, u32>(0)).ok());
        counted.unwrap_or(0).into()
    }

    /// Everything that the shop and the services outside have written down, as text.
    pub(crate) fn everything(&self) -> String {
        let mut text = String::new();
        let files = [
            ("order-saga.db", &["products", "orders", "reservations"][..]),
            ("order-saga.db.outside.db", &["calls", "answers", "charges", "refunds", "shipments", "cancellations"]),
        ];
        for (file, tables) in files {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let conn = Connection::open_with_flags(self.path(file), flags).expect("the file is there");
            for table in tables {
                let mut rows =
                    conn.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).expect("the table is there");
                let columns = rows.column_count();
                let mut rows = rows.query([]).expect("rows");
                while let Some(row) = rows.next().expect("a row") {
                    let values: Vec<_> = (0..columns).map(|n| row.get::<_, rusqlite::types::Value>(n)).collect();
                    writeln!(text, "{table} {values:?}").expect("text takes everything");
                }
            }
        }
        text
    }
}
