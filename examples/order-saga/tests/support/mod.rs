//! What the tests share: a folder with a shop in it, the program, and the services outside as a process of their own.
#![allow(dead_code, reason = "each test file is a program of its own and needs a part of this")]

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

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

/// What came of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The JSON object on the last line of standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let last = self.out.lines().last().unwrap_or_else(|| panic!("nothing was printed\n{self}"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// It could not do what was asked and says so in one sentence on one line.
    #[track_caller]
    pub(crate) fn is_unusable(&self, sentence: &str) {
        assert_eq!(self.code, 2, "{self}");
        let line = self.err.lines().last().unwrap_or_default();
        assert!(line.starts_with("order-saga: ") && line.contains(sentence), "expected {sentence:?} in\n{self}");
        assert!(!self.err.contains("panicked"), "{self}");
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// A number of the JSON object.
#[track_caller]
pub(crate) fn number(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field} in {json}"))
}

/// The gateway and the carrier as a process of their own; it ends with this value.
#[derive(Debug)]
pub(crate) struct OutsideProcess {
    child: Child,
    _out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl OutsideProcess {
    pub(crate) fn start(shop: &Shop, more: &[&str]) -> Self {
        let args = [&["outside", "--listen", "127.0.0.1:0"], more].concat();
        let mut child = shop.command(&args).stderr(Stdio::inherit()).spawn().expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}")).to_owned();
        Self { child, _out: out, url }
    }
}

impl Drop for OutsideProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Random numbers from a seed that is printed, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The seed is that of the environment variable, or one that nobody has seen before.
    pub(crate) fn from_env(variable: &str) -> Self {
        use std::hash::{BuildHasher, RandomState};
        let seed = match std::env::var(variable) {
            Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("{variable}={seed}: {error}")),
            Err(_) => RandomState::new().hash_one(0) >> 32,
        };
        println!("the seed is {seed}; repeat with {variable}={seed}");
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
