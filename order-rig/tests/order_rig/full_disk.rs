//! A disk that is full: the program says so at once, waits, and goes on by itself when there is room.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::ChildStderr,
    time::Duration,
};

use tokio::time::Instant;

use crate::support::{OutsideProcess, REAL, REAL_ORDERS, Ran, Shop, SmallDisk, number, until};

/// Far longer than it may take to be said: a second on a machine that has nothing else to do.
const SAID_WITHIN: Duration = Duration::from_secs(10);

/// Waits until a line says it, and answers all lines up to that one.
fn heard(stderr: &mut BufReader<ChildStderr>, what: &str) -> String {
    let mut lines = String::new();
    while !lines.lines().last().is_some_and(|line| line.contains(what)) {
        let bytes = stderr.read_line(&mut lines).expect("text");
        assert!(bytes > 0, "it ended without having said {what:?}:\n{lines}");
    }
    lines
}

/// How many orders have ended on the disk.
fn ended(disk: &SmallDisk, shop: &Shop) -> usize {
    let ran = Ran::of(disk.command(&shop.command(&["list"])).output().expect("it runs"));
    ran.out.lines().filter(|line| line.contains("comp")).count()
}

#[test]
fn g8_a_full_disk_is_said_at_once_and_a_run_goes_on_when_there_is_room() {
    let (disk, shop) = (SmallDisk::mount(), Shop::new());
    let outside = OutsideProcess::start(&shop, &[]);
    let args = [&REAL[..], &["--outside", &outside.url, "--concurrency", "8"]].concat();
    let mut child = disk.command(&shop.command(&args)).spawn().expect("the program starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    until(&mut child, || ended(&disk, &shop) >= 20);
    disk.fill();
    let filled = Instant::now();
    let mut said = heard(&mut stderr, "full");
    let took = filled.elapsed();
    println!("said {} ms after the last byte was taken", took.as_millis());
    assert!(took < SAID_WITHIN, "{took:?}\n{said}");
    assert!(child.try_wait().expect("a child").is_none(), "it waits\n{said}");
    disk.make_room();
    stderr.read_to_string(&mut said).expect("text");
    println!("{said}");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{ran}\n{said}");
    let all = ran.json();
    assert_eq!(number(&all, "started"), REAL_ORDERS, "{all}");
    assert_eq!(number(&all, "completed") + number(&all, "compensated"), REAL_ORDERS, "{all}");
    // Beside these it says once a second how far it is, for as long as it takes.
    let about_the_disk = said.lines().filter(|line| line.contains("full")).count();
    assert!(about_the_disk < 10, "it says so once an operation, and not at each attempt\n{said}");
    disk.copy("order-rig.db", &shop.path("order-rig.db"));
    assert_eq!(number(&shop.verify(), "orders"), REAL_ORDERS);
}
