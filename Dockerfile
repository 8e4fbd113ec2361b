# The image of the action. Build and try it as docs/container.md says;
# test/container holds it to what a runner needs.
#
# It runs as root, on purpose: the runner creates the files for outputs and
# summary, and often the kubeconfig, with the permissions of its own user, and
# no other user could write or read them.
FROM golang:1.26.8-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends busybox-static ca-certificates
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY gate ./gate
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/flux-verify-gate .
# The rest of the final root. /tmp is for the TUF client's private folder. The
# tools are for runners in Kubernetes mode (ARC), which start a step in any
# container with sh, env and tail; runner-container-hooks 0.8 and later also copy
# the workspace into it, with tar, and with find, stat, chmod, mv and rm, which
# Debian's busybox has inside of its shell.
RUN mkdir -p /out/bin /out/etc/ssl/certs \
 && mkdir -m 1777 /out/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && cp /bin/busybox /out/bin/busybox \
 && for tool in sh env tail tar; do ln -s busybox "/out/bin/$tool" || exit 1; done

FROM scratch
# One copy of the whole root, because a folder keeps its mode (/tmp's 1777) only
# inside of what is copied.
COPY --from=build /out/ /
ENV PATH=/bin
ENTRYPOINT ["/flux-verify-gate"]
