//! Where the servers' programs are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// The folders that a distribution may keep out of an ordinary user's `PATH`.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// The program `name` of `server`, or the sentence that says which package brings it.
pub(crate) fn program(name: &str, server: &'static str, package: &str) -> Result<PathBuf, Error> {
    on_path(name).ok_or_else(|| missing(server, package))
}

/// The folder of PostgreSQL's programs, of the newest version that is installed.
///
/// Debian keeps each version's in a folder of its own, and only the clients' on the path.
///
/// # Errors
/// PostgreSQL's server is not installed; the error says how to get it.
pub fn postgres_programs() -> Result<PathBuf, Error> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let numbered = versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let complete = numbered.map(|(version, path)| (version, path.join("bin"))).filter(|(_, bin)| has_all(bin));
    let newest = complete.max_by_key(|(version, _)| *version).map(|(_, bin)| bin);
    let on_path =
        || on_path("postgres").and_then(|path| path.parent().map(Path::to_path_buf)).filter(|bin| has_all(bin));
    newest.or_else(on_path).ok_or_else(|| missing("PostgreSQL", "postgresql"))
}

/// RabbitMQ's own start script.
///
/// What Debian puts on the path is a wrapper that becomes the system's user; the script itself lies beside what the
/// wrapper is a link to.
pub(crate) fn rabbitmq_program(name: &str) -> Result<PathBuf, Error> {
    let wrapper = program(name, "RabbitMQ", "rabbitmq-server")?;
    let real = fs::canonicalize(&wrapper).unwrap_or_else(|_| wrapper.clone());
    let beside = real.parent().map(|folder| folder.join(name)).filter(|path| path.is_file());
    Ok(beside.unwrap_or(real))
}

/// A Python that has the AMQP client `pika`, for tests of what other languages' clients send.
///
/// # Errors
/// None of the Pythons on this machine has it.
pub fn python_with_pika() -> Result<PathBuf, Error> {
    python_with("pika").ok_or_else(|| missing("Python's AMQP client", "python3-pika"))
}

/// A Python that has the HTTP client `httpx`, for tests of what other languages' clients send.
///
/// # Errors
/// None of the Pythons on this machine has it.
pub fn python_with_httpx() -> Result<PathBuf, Error> {
    python_with("httpx").ok_or_else(|| missing("Python's HTTP client", "python3-httpx"))
}

/// A Python that has gRPC's own client and protobuf, for tests of what other languages' clients send.
///
/// # Errors
/// None of the Pythons on this machine has both.
pub fn python_with_grpcio() -> Result<PathBuf, Error> {
    python_with("grpc, google.protobuf")
        .ok_or_else(|| missing("Python's gRPC client", "python3-grpcio python3-protobuf"))
}

/// A Python that can make virtual environments with pip in them.
pub(crate) fn python_with_venv() -> Result<PathBuf, Error> {
    python_with("venv, ensurepip").ok_or_else(|| missing("Python with virtual environments", "python3-venv"))
}

fn python_with(module: &str) -> Option<PathBuf> {
    let candidates = [on_path("python3"), Some(PathBuf::from("/usr/bin/python3"))];
    let has_module = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", &format!("import {module}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.into_iter().flatten().find(has_module)
}

/// The library that shifts a program's clock when it is loaded by `LD_PRELOAD`.
///
/// # Errors
/// It is not installed.
pub fn libfaketime() -> Result<PathBuf, Error> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut candidates = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    candidates.find(|path| path.is_file()).ok_or_else(|| missing("libfaketime", "libfaketime"))
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(MORE_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
}

fn has_all(folder: &Path) -> bool {
    ["postgres", "initdb", "psql"].iter().all(|name| folder.join(name).is_file())
}

pub(crate) fn missing(server: &'static str, package: &str) -> Error {
    Error::Missing { server, command: format!("sudo apt-get install -y {package}") }
}
