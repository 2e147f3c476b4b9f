//! Any bytes as a node of Pulsar's metadata: no more comes out than is allowed, and what can
//! be read comes back through every compression type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std_host::cursor_info::{
    CompressionType, ManagedCursorInfo, ManagedLedgerInfo, Node, decode, store,
};

const MOST: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(node) = Node::parse(data) else { return };
    let Ok(message) = node.message(MOST) else { return };
    assert!(message.len() <= MOST);
    if let Node::Wrapped(envelope) = node {
        assert_eq!(message.len(), envelope.uncompressed_size);
    }
    let cursor = decode::<ManagedCursorInfo>(&message, 0);
    let ledger = decode::<ManagedLedgerInfo>(&message, 0);
    if let Err(error) = &cursor {
        assert!(error.position() <= message.len() as u64);
    }
    if cursor.is_err() && ledger.is_err() {
        return;
    }
    for compression in CompressionType::ALL {
        let stored = store(compression, 0, &message).expect("compresses");
        let again = Node::parse(&stored).expect("an envelope").message(MOST).expect("a message");
        assert!(again == message);
    }
});
