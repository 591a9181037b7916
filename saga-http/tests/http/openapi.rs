//! The description of the status routes that is checked in is that of the code.

#[test]
fn the_file_is_that_of_the_code() {
    let described = saga_http::openapi().to_pretty_json().unwrap() + "\n";
    assert!(
        described == include_str!("../../openapi.json"),
        "saga-http/openapi.json is out of date: run `cargo run -p saga-http --example openapi > saga-http/openapi.json`"
    );
}
