# Frugal RL in a container, for machines without a Python of their own.
#
#   docker build -t frugal-rl .
#   mkdir -p runs && chmod a+w runs   # docker would make it for root alone, and the user in here is another
#   docker run --rm --shm-size=1g -v "$PWD/runs:/home/user/runs" frugal-rl train env=nclone memory=parallel
#
# Only the processor's torch is installed; for CUDA give the index of its wheels:
#   docker build --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu126 -t frugal-rl .
FROM python:3.11-slim AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /source
RUN python -m venv /opt/frugal
ENV PATH=/opt/frugal/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY constraints.txt ./
RUN pip install --index-url "$TORCH_INDEX" torch==2.13.0
COPY . .
RUN pip install -c constraints.txt .

FROM python:3.11-slim
RUN useradd --create-home user
COPY --from=build /opt/frugal /opt/frugal
ENV PATH=/opt/frugal/bin:$PATH PYTHONUNBUFFERED=1
USER user
WORKDIR /home/user
ENTRYPOINT ["frugal-rl"]
CMD ["--help"]
