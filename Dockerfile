# The image of the action. Build and try it as docs/container.md says.
#
# It runs as root, on purpose: the runner creates the files for outputs and
# summary, and often the kubeconfig, with the permissions of its own user, and
# no other user could write or read them.
FROM golang:1.26.8-bookworm AS build
# busybox gives the final stage sh, env and tail, which runners in Kubernetes
# mode (ARC) need to start a step in any container.
RUN apt-get update && apt-get install -y --no-install-recommends busybox-static ca-certificates
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY gate ./gate
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/flux-verify-gate . \
 && mkdir -p /out/bin && cp /bin/busybox /out/bin/busybox \
 && for tool in sh env tail; do ln -s busybox "/out/bin/$tool"; done

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bin /bin
COPY --from=build /out/flux-verify-gate /flux-verify-gate
ENV PATH=/bin
ENTRYPOINT ["/flux-verify-gate"]
