# Stand-ins for the two images that the Dockerfile begins with, for a machine that can reach Debian's packages but no
# registry of images. `.ci/stand-in` lays out the context: a bookworm with venv as debian.tar, this machine's Rust, and
# the certificates that were added to this machine.

FROM scratch AS debian
ADD debian.tar /
COPY certificates/ /usr/local/share/ca-certificates/
RUN update-ca-certificates
# pip has certificates of its own, and would not see those.
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt

# python and pip by these names, and free to install into, as in the image that this stands for.
FROM debian AS python
RUN python3 -m venv /opt/python
ENV PATH=/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

FROM debian AS rust
COPY rust/ /usr/local/
