//! The suite on the memory transport.

saga_testkit::transport_main!(saga_testkit::MemoryHarness);
