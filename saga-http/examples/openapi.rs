//! Prints the description of the status routes: `cargo run -p saga-http --example openapi > saga-http/openapi.json`.

fn main() -> anyhow::Result<()> {
    println!("{}", saga_http::openapi().to_pretty_json()?);
    Ok(())
}
