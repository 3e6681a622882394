/* registers_after_call(struct registers*): calls a function with known values in all registers, and says
 * what is in them then. It has no unwind information, so that it is not traced itself. */
	.text
	.p2align 2
	.globl registers_after_call
	.type registers_after_call, %function
registers_after_call:
	stp x29, x30, [sp, #-176]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	str x0, [sp, #160]
	mov x0, #0x90000000
	msr nzcv, x0
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
	mov x\n, #257 * \n
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	movi v\n\().16b, #\n + 1
	.endr
	bl keeps_all
	stp x0, x1, [sp, #-16]!
	ldr x0, [sp, #176]
	.irp n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
	str x\n, [x0, #8 * \n]
	.endr
	ldp x2, x3, [sp], #16
	stp x2, x3, [x0]
	mrs x2, nzcv
	str x2, [x0, #768]
	add x0, x0, #256
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	str q\n, [x0, #16 * \n]
	.endr
	ldp x19, x20, [sp, #16]
	ldp x21, x22, [sp, #32]
	ldp x23, x24, [sp, #48]
	ldp x25, x26, [sp, #64]
	ldp x27, x28, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	ldp x29, x30, [sp], #176
	ret
	.size registers_after_call, . - registers_after_call

/* Its first instruction is a conditional jump, so its stub has one too. */
	.p2align 2
	.type keeps_all, %function
keeps_all:
	.cfi_startproc
	b.mi 1f
	brk #1
1:	ret
	.cfi_endproc
	.size keeps_all, . - keeps_all

	.section .note.GNU-stack, "", %progbits
