//! The envelope around a message, and a node with or without one.

use std::borrow::Cow;

use prost::Message;

use super::error::{Error, ErrorKind};
use super::messages::{self, ManagedInfoMetadata};
use super::{CompressionType, codec};

/// Magic and metadata size; the metadata start behind them.
pub(super) const HEADER: usize = 6;

/// First two bytes of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Magic {
    /// `47 78`, for cursors and ledgers: every release of Pulsar.
    Info,
    /// `47 79`, of PIP-146's first text. No release has written or read it.
    Draft,
}

impl Magic {
    /// Its number, big-endian in the envelope.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Info => 0x4778,
            Self::Draft => 0x4779,
        }
    }

    fn of(node: &[u8]) -> Option<Self> {
        match *node.first_chunk()? {
            [0x47, 0x78] => Some(Self::Info),
            [0x47, 0x79] => Some(Self::Draft),
            _ => None,
        }
    }
}

/// A parsed envelope, whose payload is still compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What it starts with.
    pub magic: Magic,
    /// How the payload is compressed.
    pub compression_type: CompressionType,
    /// Bytes of the metadata message.
    pub metadata_size: usize,
    /// Bytes of the message, as declared; nothing has been reserved for them.
    pub uncompressed_size: usize,
    /// The compressed message.
    pub payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Position of the payload.
    #[must_use]
    pub const fn payload_offset(&self) -> usize {
        HEADER + self.metadata_size
    }

    /// Parses an envelope; `None` if the magic is another one, which makes it a plain message.
    ///
    /// [`ErrorKind::Envelope`]: a node of one byte, since Pulsar reads two whatever they are; a
    /// header that is cut; a metadata size that is negative or goes beyond the end; metadata
    /// that cannot be read or have an unknown type. [`ErrorKind::Size`]: a negative
    /// `uncompressedSize`.
    pub fn parse(node: &'a [u8]) -> Result<Option<Self>, Error> {
        if let [byte] = node {
            let detail = format!("one byte (0x{byte:02x}) where two are due");
            return Err(Error::new(ErrorKind::Envelope, 0, "magic", detail));
        }
        let Some(magic) = Magic::of(node) else { return Ok(None) };
        let (metadata, payload) = split(node)?;
        let (info, _): (ManagedInfoMetadata, u64) = messages::decode(metadata, HEADER as u64)
            .map_err(|error| error.with_kind(ErrorKind::Envelope))?;
        let at = HEADER as u64;
        let compression_type =
            CompressionType::from_number(info.compression_type).ok_or_else(|| {
                let detail = format!("{} is none of 0 to 4", info.compression_type);
                Error::new(ErrorKind::Envelope, at, "metadata.compressionType", detail)
            })?;
        let uncompressed_size = usize::try_from(info.uncompressed_size).map_err(|_| {
            let detail = format!("{} is negative", info.uncompressed_size);
            Error::new(ErrorKind::Size, at, "metadata.uncompressedSize", detail)
        })?;
        let metadata_size = metadata.len();
        Ok(Some(Self { magic, compression_type, metadata_size, uncompressed_size, payload }))
    }

    /// Decompresses the payload, to no more than `limit` bytes.
    pub fn unpack(&self, limit: usize) -> Result<Vec<u8>, Error> {
        if self.uncompressed_size > limit {
            self.refuse_early()?;
            let detail = format!("{} is more than the limit of {limit}", self.uncompressed_size);
            let at = HEADER as u64;
            return Err(Error::new(ErrorKind::Limit, at, "metadata.uncompressedSize", detail));
        }
        self.decompress()
    }

    /// A size that the payload cannot have is a wrong one, and no matter of limits.
    fn refuse_early(&self) -> Result<(), Error> {
        let most = match self.compression_type {
            CompressionType::None => self.payload.len(),
            CompressionType::Lz4 => self.payload.len().saturating_mul(255),
            CompressionType::Snappy => self.payload.len().saturating_mul(22),
            // At most 258 bytes in two bits.
            CompressionType::Zlib => self.payload.len().saturating_mul(1032),
            CompressionType::Zstd => usize::MAX,
        };
        if self.uncompressed_size <= most {
            return Ok(());
        }
        let detail = format!(
            "{}, and {} bytes of {} give at most {most}",
            self.uncompressed_size,
            self.payload.len(),
            self.compression_type.name()
        );
        Err(Error::new(ErrorKind::Size, HEADER as u64, "metadata.uncompressedSize", detail))
    }

    fn decompress(&self) -> Result<Vec<u8>, Error> {
        let base = self.payload_offset() as u64;
        codec::decompress(self.compression_type, self.payload, self.uncompressed_size, base)
    }

    /// Compresses a message and writes the envelope around it, whatever that costs.
    ///
    /// [`ErrorKind::Compress`]: more than 2 GiB, which the size field cannot say, or the
    /// library has failed.
    pub fn emit(
        magic: Magic,
        compression: CompressionType,
        plain: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let uncompressed_size = i32::try_from(plain.len()).map_err(|_| {
            Error::new(ErrorKind::Compress, 0, "metadata.uncompressedSize", "more than 2 GiB")
        })?;
        let metadata =
            ManagedInfoMetadata { compression_type: compression.number(), uncompressed_size }
                .encode_to_vec();
        let payload = codec::compress(compression, plain)?;
        let mut node = Vec::with_capacity(HEADER + metadata.len() + payload.len());
        node.extend_from_slice(&magic.number().to_be_bytes());
        // Two varints of ten bytes each at most.
        node.extend_from_slice(&(metadata.len() as u32).to_be_bytes());
        node.extend_from_slice(&metadata);
        node.extend_from_slice(&payload);
        Ok(node)
    }
}

/// Metadata and payload.
fn split(node: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let fault = |at, detail| Error::new(ErrorKind::Envelope, at, "metadata size", detail);
    let Some((header, rest)) = node.split_first_chunk::<HEADER>() else {
        return Err(fault(node.len() as u64, format!("cut after {} bytes", node.len())));
    };
    let &[_, _, a, b, c, d] = header;
    let size = i32::from_be_bytes([a, b, c, d]);
    let len = usize::try_from(size).map_err(|_| fault(2, format!("{size} is negative")))?;
    rest.split_at_checked(len)
        .ok_or_else(|| fault(2, format!("{size}, {} bytes are left", rest.len())))
}

/// What a metadata store has under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node<'a> {
    /// A message as it is.
    Plain(&'a [u8]),
    /// A message in an envelope.
    Wrapped(Envelope<'a>),
}

impl<'a> Node<'a> {
    /// Looks at the magic, and parses the envelope if there is one.
    pub fn parse(node: &'a [u8]) -> Result<Self, Error> {
        Ok(Envelope::parse(node)?.map_or(Self::Plain(node), Self::Wrapped))
    }

    /// The bytes of the message, of which there may be `limit`.
    pub fn message(&self, limit: usize) -> Result<Cow<'a, [u8]>, Error> {
        match self {
            Self::Plain(bytes) if bytes.len() > limit => {
                let detail = format!("{} bytes are more than the limit of {limit}", bytes.len());
                Err(Error::new(ErrorKind::Limit, 0, "message", detail))
            }
            Self::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Wrapped(envelope) => envelope.unpack(limit).map(Cow::Owned),
        }
    }

    /// Names the place of what is wrong with the message.
    pub fn locate(&self, error: Error) -> Error {
        match self {
            Self::Plain(_) => error,
            Self::Wrapped(envelope) => error.in_payload(envelope.payload_offset() as u64),
        }
    }
}

/// What Pulsar would store for a message: in an envelope if a type is set and the message is
/// larger than `threshold` bytes (PIP-270), else as it is.
pub fn store(
    compression: CompressionType,
    threshold: u64,
    plain: &[u8],
) -> Result<Cow<'_, [u8]>, Error> {
    if compression == CompressionType::None || plain.len() as u64 <= threshold {
        return Ok(Cow::Borrowed(plain));
    }
    Envelope::emit(Magic::Info, compression, plain).map(Cow::Owned)
}
