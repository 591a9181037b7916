//! The example runs, and prints what it says.

use std::process::Command;

#[test]
fn each_order_ends_as_its_answer_says() {
    let ran = Command::new(env!("CARGO_BIN_EXE_approval")).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    for said in [
        "early: form-1 says granted by Ada, which counts\n",
        "approved: form-2 says granted by Ada, which counts\n",
        "approved: form-2 says granted by Ada, which was known\n",
        "approved: form-3 says declined by Bob, which is too late\n",
        "declined: form-4 says declined by Bob, which counts\n",
        "by-a-page: form-5 counts\n",
        "small: completed\n",
        "approved: completed\n",
        "declined: compensated, because `confirm-order` failed: declined by Bob\n",
        "unanswered: compensated, because `confirm-order` failed: nobody answered\n",
        "early: completed\n",
        "by-a-page: completed\n",
        "unanswered: form-6 says granted by Ada, which is too late\n",
        "12 of 20 pieces are left\n",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}{err}");
    }
}
