# One image for the API, the worker and the migrations; which of them it is, the command says.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Only esbuild's and swc's own binaries are needed, and these come as packages: no install script has to run.
RUN npm ci --omit=dev --ignore-scripts

FROM packages AS bundle
COPY . .
# Workers start from a bundle that was built with the very code they run.
RUN node worker/bundle-main.ts

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json package-lock.json config.ts ./
COPY activities activities
COPY api api
COPY db db
COPY domain domain
COPY ops ops
COPY process process
COPY worker worker
COPY workflows workflows
COPY --from=bundle /app/.local/bundle .local/bundle
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT ?? 3000}/health/live`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "api/main.ts"]
