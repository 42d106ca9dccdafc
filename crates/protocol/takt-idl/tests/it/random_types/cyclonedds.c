/* CycloneDDS 0.10.2 as a codec: the generated code of one type (`topic_type`, by the linker) and values on standard input.
 *
 * Each line of input is `VERSION HEX`: the XCDR version (1, 2) and a little-endian body without encapsulation header. The answer is
 * `refused`, or `LITTLE BIG KEY`: what the library writes of the value that it read, in both byte orders, and the key hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dds/dds.h>
#include <dds/ddsi/ddsi_cdrstream.h>
#include <dds/ddsi/ddsi_serdata_default.h>
#include <dds/ddsi/ddsi_sertype.h>
#include <dds/ddsrt/md5.h>

extern const dds_topic_descriptor_t topic_type;

static void print(const unsigned char *bytes, size_t len) {
    if (len == 0) putchar('-');
    for (size_t i = 0; i < len; i++) printf("%02x", bytes[i]);
}

static size_t from_hex(const char *text, unsigned char *bytes) {
    size_t len = 0;
    unsigned byte;
    for (; sscanf(text, "%2x", &byte) == 1; text += 2) bytes[len++] = (unsigned char)byte;
    return len;
}

static void answer(const struct ddsi_sertype_default *type, uint32_t version, unsigned char *bytes, uint32_t len) {
    uint32_t actual = 0;
    if (!dds_stream_normalize(bytes, len, false, version, type, false, &actual)) {
        puts("refused");
        return;
    }
    void *sample = calloc(1, type->type.size);
    dds_istream_t in;
    dds_istream_init(&in, actual, bytes, version);
    dds_stream_read_sample(&in, sample, type);
    dds_ostreamLE_t little;
    dds_ostreamLE_init(&little, 0, version);
    dds_ostreamBE_t big;
    dds_ostreamBE_init(&big, 0, version);
    if (!dds_stream_write_sampleLE(&little, sample, type) || !dds_stream_write_sampleBE(&big, sample, type)) {
        puts("refused");
        return;
    }
    print(little.x.m_buffer, little.x.m_index);
    putchar(' ');
    print(big.x.m_buffer, big.x.m_index);
    putchar(' ');
    unsigned char hash[16] = { 0 };
    if (type->type.keys.nkeys > 0) {
        dds_ostreamBE_t key;
        dds_ostreamBE_init(&key, 0, 2);
        dds_stream_write_keyBE(&key, sample, type);
        if (type->type.flagset & DDS_TOPIC_FIXED_KEY_XCDR2) {
            memcpy(hash, key.x.m_buffer, key.x.m_index);
        } else {
            ddsrt_md5_state_t state;
            ddsrt_md5_init(&state);
            ddsrt_md5_append(&state, key.x.m_buffer, key.x.m_index);
            ddsrt_md5_finish(&state, hash);
        }
    }
    print(hash, sizeof hash);
    putchar('\n');
}

int main(void) {
    const dds_topic_descriptor_t *of = &topic_type;
    struct ddsi_sertype_default type;
    memset(&type, 0, sizeof type);
    type.type.size = of->m_size;
    type.type.align = of->m_align;
    type.type.flagset = of->m_flagset;
    type.type.keys.nkeys = of->m_nkeys;
    type.type.keys.keys = calloc(of->m_nkeys + 1, sizeof *type.type.keys.keys);
    for (uint32_t i = 0; i < of->m_nkeys; i++) {
        type.type.keys.keys[i].ops_offs = of->m_keys[i].m_offset;
        type.type.keys.keys[i].idx = of->m_keys[i].m_idx;
    }
    type.type.ops.nops = dds_stream_countops(of->m_ops, of->m_nkeys, of->m_keys);
    type.type.ops.ops = (uint32_t *)of->m_ops;
    enum ddsi_sertype_extensibility extensibility;
    if (!dds_stream_extensibility(of->m_ops, &extensibility)) return 2;
    type.encoding_format = ddsi_sertype_extensibility_enc_format(extensibility);
    printf("%d\n", dds_stream_minimum_xcdr_version(of->m_ops));

    static char line[1 << 20];
    static unsigned char bytes[1 << 19];
    while (fgets(line, sizeof line, stdin)) {
        size_t len = from_hex(line + 2, bytes);
        answer(&type, (uint32_t)(line[0] - '0'), bytes, (uint32_t)len);
    }
    return 0;
}
