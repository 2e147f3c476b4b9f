//! Serializers and their compositions, and the format of bakdata's large messages, as a client
//! sees them.

mod bakdata;
mod chains;
mod store;
