//! The suite on the memory store, which is the reference for all others.

saga_testkit::store_main!(start_in: saga_testkit::MemoryHarness);
