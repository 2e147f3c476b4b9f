//! Any list of codecs and the same list backwards, and anything at all into what reads.

use bytes::Bytes;
use logseg_core::Codec;
use proptest::prelude::*;
use std_host::codec_spec::CodecSpec;
use std_host::serde::{
    BytesDeserializer, BytesSerializer, CodecDeserializer, CodecSerializer, Composed,
    ComposedDeserializer, Config, Deserializer, Header, Headers, JsonDeserializer, RecordPart,
    Registry, Serializer, StringDeserializer,
};

const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
const LIMIT: u64 = 64 << 10;

fn specs() -> impl Strategy<Value = Vec<CodecSpec>> {
    let spec = |codec, levels: std::ops::RangeInclusive<i32>| {
        levels.prop_map(move |level| CodecSpec::with_level(codec, level).unwrap())
    };
    let spec = prop_oneof![
        spec(Codec::Gzip, 1..=9),
        spec(Codec::Lz4, 1..=17),
        // Higher levels have contexts of many megabytes.
        spec(Codec::Zstd, -70..=12),
        Just(CodecSpec::new(Codec::Snappy).unwrap()),
    ];
    prop::collection::vec(spec, 0..5)
}

/// Of few different bytes, so that there is something to compress, or of all.
fn values() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        prop::collection::vec(0..3u8, 0..30_000),
        prop::collection::vec(any::<u8>(), 0..1000),
    ]
    .prop_map(Bytes::from)
}

fn headers() -> impl Strategy<Value = Headers> {
    let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..3));
    let header = ("[a-z_.]{0,5}", value)
        .prop_map(|(key, value)| Header { key, value: value.map(Bytes::from) });
    prop::collection::vec(header, 0..4).prop_map(Headers::from_iter)
}

fn composed(specs: &[CodecSpec]) -> (Composed<Bytes>, ComposedDeserializer<Bytes>) {
    let there = specs
        .iter()
        .fold(Composed::new(BytesSerializer), |all, spec| all.then(CodecSerializer::new(*spec)));
    let back = specs.iter().rev().fold(ComposedDeserializer::steps(), |all, spec| {
        all.then(CodecDeserializer::new(spec.codec()))
    });
    (there, back.last(BytesDeserializer))
}

fn configured(specs: &[CodecSpec]) -> (Composed<Bytes>, ComposedDeserializer<Bytes>) {
    let mut names: Vec<_> = specs.iter().map(|spec| spec.codec().name()).collect();
    names.insert(0, "bytes");
    let list = names.join(",");
    names.reverse();
    let mut config = Config::from([
        ("key.serializers".to_owned(), list),
        ("key.deserializers".to_owned(), names.join(" , ")),
    ]);
    for spec in specs {
        if let Some(level) = spec.level() {
            let key = format!("serializers.{}.level", spec.codec().name());
            config.insert(key, level.to_string());
        }
    }
    let registry = Registry::bytes();
    (
        registry.serializer(RecordPart::Key, &config).unwrap(),
        registry.deserializer(RecordPart::Key, &config).unwrap(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn there_and_back(specs in specs(), value in values(), before in headers()) {
        for (serializer, deserializer) in [composed(&specs), configured(&specs)] {
            let mut headers = before.clone();
            for _ in 0..2 {
                let bytes = serializer.serialize("t", &mut headers, Some(&value)).unwrap();
                let read = deserializer.deserialize("t", &mut headers, bytes.as_ref()).unwrap();
                prop_assert_eq!(read.as_ref(), Some(&value));
            }
            prop_assert_eq!(serializer.serialize("t", &mut headers, None).unwrap(), None);
            prop_assert_eq!(deserializer.deserialize("t", &mut headers, None).unwrap(), None);
            prop_assert_eq!(&headers, &before);
        }
    }

    /// What was compressed and then damaged.
    #[test]
    fn damaged(
        value in values(),
        at in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..8),
        kind in 0..4,
        before in headers(),
    ) {
        for codec in CODECS {
            let spec = CodecSpec::new(codec).unwrap();
            let packed = CodecSerializer::new(spec)
                .serialize("t", &mut Headers::new(), Some(&value))
                .unwrap()
                .unwrap();
            let mut packed = packed.to_vec();
            let at = at.index(packed.len() + 1);
            match kind {
                0 => packed.truncate(at),
                1 => drop(packed.splice(at..at, noise.clone())),
                2 => packed.extend_from_slice(&noise),
                _ => {
                    let end = (at + noise.len()).min(packed.len());
                    drop(packed.splice(at..end, noise.clone()));
                }
            }
            for reader in CODECS {
                let step = CodecDeserializer::with_limit(reader, LIMIT);
                let back = ComposedDeserializer::steps().then(step).last(BytesDeserializer);
                let (mut headers, data) = (before.clone(), Bytes::from(packed.clone()));
                if let Ok(read) = back.deserialize("t", &mut headers, Some(&data)) {
                    prop_assert!(read.unwrap().len() as u64 <= LIMIT);
                }
                prop_assert_eq!(&headers, &before);
            }
        }
    }

    /// Anything, also behind the bytes that a format starts with.
    #[test]
    fn hostile(
        start in prop::sample::select(vec![
            &b""[..],
            b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
            b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01",
            b"\xff\xff\xff\xff\x0f",
            b"\x04\x22\x4d\x18\x60\x40\x82",
            b"\x04\x22\x4d\x18\x60\x70\x73",
            b"\x28\xb5\x2f\xfd\0\x88",
            b"\x28\xb5\x2f\xfd\xa0\0\0\0\x80",
            b"{\"a\":[",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let data = Bytes::from([start, &rest].concat());
        let headers = &mut Headers::new();
        for codec in CODECS {
            let step = CodecDeserializer::with_limit(codec, LIMIT);
            if let Ok(read) = step.deserialize("t", headers, Some(&data)) {
                prop_assert!(read.unwrap().len() as u64 <= LIMIT);
            }
        }
        let json: Result<Option<serde_json::Value>, _> =
            JsonDeserializer.deserialize("t", headers, Some(&data));
        prop_assert!(json.is_err() || serde_json::from_slice::<serde_json::Value>(&data).is_ok());
        let text: Result<Option<String>, _> =
            StringDeserializer.deserialize("t", headers, Some(&data));
        prop_assert_eq!(text.is_ok(), std::str::from_utf8(&data).is_ok());
        prop_assert_eq!(BytesDeserializer.deserialize("t", headers, Some(&data)).unwrap(), Some(data));
    }
}

/// A step after a bomb is never reached, and the limit is that of each step.
#[test]
fn a_bomb_in_a_bomb() {
    let zeros = Bytes::from(vec![0; 32 << 20]);
    let zstd = CodecSpec::new(Codec::Zstd).unwrap();
    let (serializer, _) = composed(&[zstd, zstd]);
    let bomb = serializer.serialize("t", &mut Headers::new(), Some(&zeros)).unwrap().unwrap();
    assert!(bomb.len() < 1000, "{}", bomb.len());
    let back = ComposedDeserializer::steps()
        .then(CodecDeserializer::with_limit(Codec::Zstd, LIMIT))
        .then(CodecDeserializer::with_limit(Codec::Zstd, LIMIT))
        .last(JsonDeserializer);
    let read: Result<Option<serde_json::Value>, _> =
        back.deserialize("t", &mut Headers::new(), Some(&bomb));
    let error = read.unwrap_err();
    assert_eq!((error.step(), error.place()), ("zstd", Some((2, 3))));
}
