//! The example runs, and prints what it says.

use std::process::Command;

/// The numbers behind these words, line by line.
fn numbers(out: &str, words: &str) -> Vec<u32> {
    out.lines().filter_map(|line| line.split_once(words)?.1.split_once(' ')?.0.parse().ok()).collect()
}

#[test]
fn a_night_goes_on_where_it_was_and_everybody_pays_once() {
    let ran = Command::new(env!("CARGO_BIN_EXE_nightly-settlement")).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    for said in [
        "take-orders      done\ncollect-payments started, reported ",
        "   the process has ended, and the night has not\n",
        "   the bank is asked: the batch is open\n",
        "   the bank is asked: the batch is closed\n   the night is settled\n",
        "-- 830 orders are settled for ",
        "the bank has collected 830 payments and ",
        " and 1 times to close\n",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}{err}");
    }
    // What the first process reported last before it was killed may lie some payments back, but it is not lost.
    let (reported, begins) = (numbers(&out, "reported "), numbers(&out, "begins behind "));
    assert_eq!((reported.len(), begins.len()), (2, 3), "{out}");
    assert!(reported[0] > 0 && begins[..2] == [0, reported[0]], "{out}");
    // The second was asked to end, so it goes on behind the very payment.
    assert_eq!([reported[1], begins[2]], [numbers(&out, "it ends behind ")[0]; 2], "{out}");
    // Nothing was collected twice but what was not reported any more when the first was killed.
    let asked = numbers(&out, "it was asked ")[0];
    assert!((830..=2 * 830 - reported[0]).contains(&asked), "{out}");
}

#[test]
fn a_file_without_orders_is_named() {
    let ran = Command::new(env!("CARGO_BIN_EXE_nightly-settlement")).arg("Cargo.toml").output();
    let ran = ran.unwrap_or_else(|error| panic!("{error}"));
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && err.contains("line 1 of Cargo.toml is no order"), "{err}");
}

#[test]
fn an_unknown_option_is_no_file() {
    let ran = Command::new(env!("CARGO_BIN_EXE_nightly-settlement")).arg("--nonsense").output();
    let ran = ran.unwrap_or_else(|error| panic!("{error}"));
    let err = String::from_utf8_lossy(&ran.stderr);
    let said = "unknown option `--nonsense`; usage: nightly-settlement [ORDERS.jsonl]";
    assert!(!ran.status.success() && err.contains(said) && !err.contains("cannot read"), "{err}");
}
