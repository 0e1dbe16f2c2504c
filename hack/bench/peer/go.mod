module bench/peer

go 1.26.8
